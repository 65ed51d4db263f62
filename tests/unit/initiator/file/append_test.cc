// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/initiator/file/data_path_fixture.h"

// Appends as the mount makes them: without asking where that may be, otherwise by asking first.
namespace pnfsrdma::initiator {
namespace {

class AppendTest : public DataPathTest {
 protected:
  void SetUp() override { make_file(1000); }

  // The GETATTR that the mount asks for the end by.
  void ask() {
    ++asked;
    const uint64_t version = file->local_version();
    const SteadyTime now = clock.now();
    file->server_size(channel.size, version, now);
  }
  // Where it went.
  uint64_t append(size_t length, uint8_t seed) {
    const BufferSlice source = filled(0, length, seed);
    auto at = file->append_unasked(source);
    EXPECT_TRUE(at);
    if (at && !*at) {
      ask();
      at = file->append(source);
    }
    EXPECT_TRUE(at) << at.error().to_string();
    return at ? **at : UINT64_MAX;
  }

  int asked = 0;
};

TEST_F(AppendTest, TheOnlyWriterAsksAFewTimesAndNeverAgain) {
  channel.end_token = 7;
  for (int i = 0; i < 100; ++i) EXPECT_EQ(append(100, 1), 1000u + i * 100);
  // Before the layout is there, before the end is ours, and then where that is.
  EXPECT_EQ(asked, 5);
  EXPECT_EQ(channel.layoutgets, 2);
  EXPECT_EQ(channel.writes, 0);
  ASSERT_TRUE(file->fsync(cursor));
  EXPECT_EQ(channel.size, 11'000u);
}

TEST_F(AppendTest, WhoIsNotToldThatTheEndIsHisAsksEachTimeAndSeldomForTheEnd) {
  channel.end_token = 0;
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(append(100, 1), 1000u + i * 100);
  EXPECT_EQ(asked, 1000);
  EXPECT_LE(channel.layoutgets, 12);
}

TEST_F(AppendTest, WhoWroteBeforeHeAppendedAsksForTheEndOfWhatHeHolds) {
  channel.end_token = 7;
  write(0, 4096, 1);
  EXPECT_EQ(channel.ends_asked, 0);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(append(100, 1), 4096u + i * 100);
  EXPECT_EQ(channel.layoutgets, 2);
  EXPECT_EQ(asked, 5);
}

TEST_F(AppendTest, TheLayoutsBehindItGrowWithoutAsking) {
  channel.end_token = 7;
  channel.segment_bytes = 64 << 10;
  for (int i = 0; i < 64; ++i) EXPECT_EQ(append(64 << 10, 1), 1000u + (uint64_t(i) << 16));
  EXPECT_EQ(asked, 5);
  EXPECT_GT(channel.layoutgets, 2);
}

TEST_F(AppendTest, ARecallEndsItAndTheNextOneGoesWhereTheServerSays) {
  channel.end_token = 7;
  for (int i = 0; i < 6; ++i) append(100, 1);
  ASSERT_EQ(asked, 5);
  recall(0, UINT64_MAX, channel.recall_stateid()).then();
  // What was appended is known to the server before the layout goes back; then another one appends.
  EXPECT_EQ(channel.size, 1600u);
  channel.size = 5000;
  channel.end_token = 8;
  EXPECT_EQ(append(100, 2), 5000u);
  EXPECT_EQ(asked, 6);
}

TEST_F(AppendTest, ARecallEndsItEvenIfTheServerTellsTheSameAgain) {
  channel.end_token = 7;
  for (int i = 0; i < 6; ++i) append(100, 1);
  recall(0, UINT64_MAX, channel.recall_stateid()).then();
  EXPECT_EQ(append(100, 1), 1600u);
  EXPECT_EQ(append(100, 1), 1700u);
  EXPECT_EQ(append(100, 1), 1800u);
  EXPECT_EQ(asked, 7);
}

TEST_F(AppendTest, AnotherNumberMeansAnotherEnd) {
  channel.end_token = 7;
  channel.segment_bytes = 4096;
  auto options = options_now;
  options.layout_bytes_min = 4096;
  build(options, 1000);
  for (int i = 0; i < 6; ++i) append(100, 1);
  ASSERT_EQ(asked, 5);
  ASSERT_TRUE(file->fsync(cursor));
  constexpr uint64_t kFar = 1 << 19;
  channel.size = kFar;
  channel.end_token = 8;
  // What it holds it may write; with the first answer that says more it asks.
  EXPECT_EQ(append(4096 - 1600, 2), 1600u);
  uint64_t at = 0;
  for (int i = 0; i < 16 && at < kFar; ++i) at = append(4096, 2);
  EXPECT_EQ(at, kFar);
  EXPECT_EQ(asked, 6);
}

// Not some of it here and all of it again behind that.
TEST_F(AppendTest, WhatHasBegunStaysInItsPlace) {
  channel.end_token = 7;
  channel.segment_bytes = 4096;
  auto options = options_now;
  options.layout_bytes_min = 4096;
  build(options, 1000);
  for (int i = 0; i < 6; ++i) append(100, 1);
  ASSERT_EQ(asked, 5);
  channel.end_token = 8;
  EXPECT_EQ(append(8192, 2), 1600u);
  EXPECT_EQ(asked, 5);
  ASSERT_TRUE(file->fsync(cursor));
  EXPECT_EQ(channel.size, 1600u + 8192);
}

TEST_F(AppendTest, LostLayoutsEndIt) {
  channel.end_token = 7;
  for (int i = 0; i < 6; ++i) append(100, 1);
  ASSERT_TRUE(file->fsync(cursor));
  path->layouts_lost();
  channel.forget_layouts();
  channel.size = 9000;
  EXPECT_EQ(append(100, 2), 9000u);
  EXPECT_EQ(asked, 6);
}

// An answer shows revoked state: nobody knows yet whether it is this file's.
TEST_F(AppendTest, DoubtAboutLayoutsEndsIt) {
  channel.end_token = 7;
  for (int i = 0; i < 6; ++i) append(100, 1);
  ASSERT_TRUE(file->fsync(cursor));
  path->layouts_in_doubt();
  channel.size = 9000;
  EXPECT_EQ(append(100, 2), 9000u);
  EXPECT_EQ(asked, 6);
}

TEST_F(AppendTest, ATruncationOfOurOwnIsAskedFor) {
  channel.end_token = 7;
  for (int i = 0; i < 6; ++i) append(100, 1);
  for (const bool done : {true, false}) {
    const int before = asked;
    const auto operation = file->truncating(500);
    ASSERT_TRUE(operation);
    if (*operation) {
      (void)channel.layout_return({}, **operation, nullptr);
      file->layout_returned({});
    }
    if (done) channel.size = 500;
    (void)file->truncated(500, done);
    EXPECT_EQ(append(100, 2), channel.size.load());
    EXPECT_GT(asked, before);
    ASSERT_TRUE(file->fsync(cursor));
  }
}

// It may have been given away meanwhile: we had no room there, and so there was nothing to recall.
TEST_F(AppendTest, RoomThatComesWithoutAWordOfTheEndEndsIt) {
  channel.end_token = 7;
  for (int i = 0; i < 6; ++i) append(100, 1);
  LayoutCache& cache = file->inside().cache;
  ASSERT_NE(cache.end(), 0u);
  LayoutSegment segment{.offset = 8 << 20, .length = 4096, .iomode = nfs4::IoMode::kReadWrite};
  segment.device = cache.devices().front();
  segment.read.grant = segment.write.grant = 999;
  cache.take(channel.stateid(), {segment}, channel.size, file->inside().layouts.epoch);
  EXPECT_EQ(cache.end(), 0u);
}

// The answer says what was true before a write of our own: nobody knows where the file ends.
TEST_F(AppendTest, AnAnswerThatWasOvertakenDoesNotMakeTheEndKnown) {
  channel.end_token = 7;
  for (int i = 0; i < 4; ++i) append(100, 1);
  const uint64_t version = file->local_version();
  const SteadyTime now = clock.now();
  write(2000, 100, 1);
  file->server_size(1000, version, now);
  EXPECT_EQ(append(100, 1), 2100u);
  EXPECT_EQ(asked, 5);
}

TEST_F(AppendTest, ASmallFileThatIsAppendedToOftenIsWorthALayout) {
  auto options = options_now;
  options.threshold_write_size = 64 << 10;
  build(options, 1000);
  channel.end_token = 7;
  for (int i = 0; i < 100; ++i) EXPECT_EQ(append(100, 1), 1000u + i * 100);
  EXPECT_EQ(channel.writes, 7);
  EXPECT_LE(asked, 10);
}

TEST_F(AppendTest, WhoAppendsALittleAndClosesAsksForNothing) {
  channel.end_token = 7;
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(append(100, 1), 1000u + i * 100);
    file->release();
    file = path->open(handle, opens, channel.size);
  }
  EXPECT_EQ(channel.ends_asked, 0);
}

TEST_F(AppendTest, WithoutALayoutItGoesThroughTheServerAndAsks) {
  auto options = options_now;
  options.layouts = false;
  build(options, 1000);
  channel.end_token = 7;
  for (int i = 0; i < 5; ++i) EXPECT_EQ(append(100, 1), 1000u + i * 100);
  EXPECT_EQ(asked, 5);
  EXPECT_EQ(channel.writes, 5);
}

}  // namespace
}  // namespace pnfsrdma::initiator
