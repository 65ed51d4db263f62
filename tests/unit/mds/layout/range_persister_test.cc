// SPDX-License-Identifier: Apache-2.0
#include "server/mds/layout/range_persister.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "tests/unit/mds/layout/layout_world.h"

namespace pnfsrdma::mds::testing {
namespace {

using nfs4::Status;

constexpr uint64_t kExtents = 4 * kExtentsPerBatch + 7;
constexpr uint64_t kStride = 32768;
constexpr uint64_t kFileEnd = (kExtents - 1) * kStride + 1;
// Rows beside the extents that a turn may look at: the inode, and where a scan ends.
constexpr size_t kOthers = 16;

// A file with more extents than a turn may look at; what the brick is asked to flush is noted.
struct ManyExtents : ::testing::Test {
  LayoutWorld world;
  InodeId file = world.create("f");
  LayoutStateid stateid;
  std::vector<brick::Range> flushed;
  size_t calls = 0;
  size_t rows_of_a_turn = 0;  // the most of any
  std::function<void()> at_third_call = [] {};

  void SetUp() override {
    const std::string text(1, static_cast<char>('A' + file % 26));
    for (uint64_t i = 0; i < kExtents; ++i) ASSERT_EQ(world.write(file, i * kStride, text), Status::kOk);
    ASSERT_EQ(world.extents(file).size(), kExtents);
    world.brick.on_persist = [this](const std::vector<brick::Range>& ranges) {
      flushed.insert(flushed.end(), ranges.begin(), ranges.end());
      if (++calls == 3) at_third_call();
    };
  }
  // Alice may write all of it, under one grant.
  void hold_layout() {
    auto& table = const_cast<LayoutTable&>(world.mds->table());
    HeldLayout& layout = table.add(file, kAlice, {std::byte{kLayoutStateidTag}});
    table.add_grant(layout, {.grant = 1, .file = {0, 2 * kFileEnd}, .logical = 0, .writable = true});
    stateid = layout.advance();
  }
  CommitRequest layout_commit(std::vector<nfs4::PersistRange> persist) const {
    CommitRequest request{.client = kAlice, .inode = file, .stateid = stateid, .range = {0, 2 * kFileEnd}};
    request.last_write_offset = kFileEnd + 99;
    request.persist = std::move(persist);
    return request;
  }
  void turn() {
    const size_t before = world.store.rows_visited;
    world.loop.run_once(Milliseconds(0));
    rows_of_a_turn = std::max(rows_of_a_turn, world.store.rows_visited - before);
  }
  // `begin` is a turn of its own.
  template <typename Answer>
  std::optional<Answer> answer_of(const std::function<void(std::function<void(Answer)>)>& begin) {
    const auto answer = std::make_shared<std::optional<Answer>>();
    world.loop.at_next_turn([&] { begin([answer](Answer got) { *answer = std::move(got); }); });
    for (int i = 0; i < 100 && !*answer; ++i) turn();
    return *answer;
  }
  std::optional<std::expected<nfs4::Verifier, Status>> commit() {
    return answer_of<std::expected<nfs4::Verifier, Status>>(
        [&](auto done) { world.mds->io().commit(file, 0, 0, std::move(done)); });
  }
  std::optional<LayoutCommitter::Answer> commit(CommitRequest request) {
    return answer_of<LayoutCommitter::Answer>([&, request = std::move(request)](auto done) {
      world.mds->committer().commit(request, std::move(done));
    });
  }
  void expect_all_flushed_once() {
    ASSERT_EQ(flushed.size(), kExtents);
    const std::vector<Extent> extents = world.extents(file);
    for (uint64_t i = 0; i < kExtents; ++i) {
      EXPECT_EQ(flushed[i].logical, extents[i].logical);
      EXPECT_EQ(flushed[i].length, std::min(extents[i].length, kFileEnd - extents[i].file_offset));
    }
  }
};

TEST_F(ManyExtents, ACommitLooksAtABatchOfThemInATurn) {
  const auto answer = commit();
  ASSERT_TRUE(answer && *answer);
  EXPECT_LE(rows_of_a_turn, kExtentsPerBatch + kOthers);
  expect_all_flushed_once();
}

TEST_F(ManyExtents, ALayoutCommitLooksAtABatchOfThemInATurn) {
  hold_layout();
  const auto answer = commit(layout_commit({{0, kFileEnd}}));
  ASSERT_TRUE(answer && *answer);
  EXPECT_LE(rows_of_a_turn, kExtentsPerBatch + kOthers);
  expect_all_flushed_once();
  EXPECT_EQ(world.stat(file)->size, kFileEnd + 100);
}

// A client that names the same bytes a thousand times costs no more than one that names them once.
TEST_F(ManyExtents, WhatALayoutCommitNamesSeveralTimesIsFlushedOnce) {
  hold_layout();
  std::vector<nfs4::PersistRange> persist(nfs4::kPersistRangesMax, {0, kFileEnd});
  persist.front() = {kFileEnd / 2, kFileEnd / 2};
  const auto answer = commit(layout_commit(persist));
  ASSERT_TRUE(answer && *answer);
  EXPECT_LE(rows_of_a_turn, kExtentsPerBatch + kOthers);
  expect_all_flushed_once();
}

// Each cuts an extent at its ends: 1000 bytes of each, in ranges of their own.
TEST_F(ManyExtents, RangesCutTheirExtents) {
  hold_layout();
  std::vector<nfs4::PersistRange> persist;
  for (uint64_t i = 0; i < nfs4::kPersistRangesMax; ++i) persist.push_back({i * kStride + 100, 1000});
  const auto answer = commit(layout_commit(persist));
  ASSERT_TRUE(answer && *answer);
  ASSERT_EQ(flushed.size(), persist.size());
  const std::vector<Extent> extents = world.extents(file);
  for (uint64_t i = 0; i < flushed.size(); ++i) {
    EXPECT_EQ(flushed[i].logical, extents[i].logical + 100);
    EXPECT_EQ(flushed[i].length, 1000u);
  }
}

// A batch ends with an extent that goes on in the next ranges: they are not taken for flushed.
TEST(RangePersister, AnExtentThatReachesOverSeveralRangesIsFlushedInEachOfThem) {
  LayoutWorld world;
  const InodeId file = world.create("f");
  ASSERT_EQ(world.allocate(file, {0, 1 << 20}), Status::kOk);
  ASSERT_EQ(world.extents(file).size(), 1u);
  std::vector<brick::Range> flushed;
  world.brick.on_persist = [&](const auto& ranges) {
    flushed.insert(flushed.end(), ranges.begin(), ranges.end());
  };
  std::vector<ByteRange> ranges;
  for (uint64_t i = 0; i < kExtentsPerBatch + 9; ++i) ranges.push_back({i * 1000, i * 1000 + 10});
  RangePersister persister(world.loop, world.store, world.mds->bricks());
  std::optional<Status> answer;
  persister.persist(file, ranges, [&](Status status) { answer = status; });
  world.settle();
  EXPECT_EQ(answer, Status::kOk);
  ASSERT_EQ(flushed.size(), ranges.size());
  const uint64_t begin = world.extents(file).front().logical;
  for (size_t i = 0; i < ranges.size(); ++i) EXPECT_EQ(flushed[i].logical, begin + ranges[i].begin);
}

TEST(RangePersister, HolesAreDoneWithABrickThatIsNotAsked) {
  LayoutWorld world;
  const InodeId file = world.create("f");
  std::vector<ByteRange> ranges;
  for (uint64_t i = 0; i < 4 * RangePersister::kRangesPerTurn; ++i)
    ranges.push_back({i * 8192, i * 8192 + 1});
  RangePersister persister(world.loop, world.store, world.mds->bricks());
  std::optional<Status> answer;
  persister.persist(file, ranges, [&](Status status) { answer = status; });
  EXPECT_FALSE(answer) << "in one turn";
  world.settle();
  EXPECT_EQ(answer, Status::kOk);
  EXPECT_EQ(world.brick.count("persist"), 0u);
}

TEST_F(ManyExtents, NothingIsAnsweredBeforeTheLastBatchIsDurable) {
  at_third_call = [&] { world.brick.dead = true; };
  EXPECT_FALSE(commit()) << "the brick has not said that the third batch is";
  EXPECT_EQ(calls, 3u);
}

TEST_F(ManyExtents, ABrickThatLosesBytesBetweenTwoBatchesShowsInTheVerifier) {
  const nfs4::Verifier before = world.write_unstable(file, kFileEnd, "x");
  at_third_call = [&] { world.brick.verifier = {std::byte{9}}; };
  flushed.clear();
  const auto answer = commit();
  ASSERT_TRUE(answer);
  EXPECT_TRUE(!*answer || **answer != before);
}

TEST_F(ManyExtents, AWriteDuringTheFlushIsNotTakenForFlushed) {
  const nfs4::Verifier before = world.write_unstable(file, 0, "x");
  at_third_call = [&] {
    world.mds->io().write({.client = kBob,
                           .inode = file,
                           .offset = 0,
                           .data = std::make_shared<const Bytes>(Bytes{std::byte{'y'}}),
                           .stable = nfs4::StableHow::kUnstable},
                          [](const auto&) {});
  };
  const auto first = commit();
  ASSERT_TRUE(first && *first);
  EXPECT_EQ(**first, before);
  // The brick loses it: the file must not be one that nothing is uncommitted of.
  world.brick.verifier = {std::byte{9}};
  const auto second = commit();
  ASSERT_TRUE(second);
  EXPECT_TRUE(!*second || **second != before);
}

TEST_F(ManyExtents, AFileThatIsCutMeanwhileIsFlushedAsFarAsItGoes) {
  at_third_call = [&] {
    world.mds->conflicts().set_size(file, 2 * kExtentsPerBatch * kStride, kBob, [](Status) {});
  };
  const auto answer = commit();
  ASSERT_TRUE(answer && *answer);
  EXPECT_LT(flushed.size(), kExtents);
}

TEST_F(ManyExtents, ALayoutThatGoesMeanwhileCommitsNoSize) {
  hold_layout();
  at_third_call = [&] { world.mds->layouts().give_back(kAlice, file, {0, kEndOfFile}, IoMode::kAny, [] {}); };
  const auto answer = commit(layout_commit({{0, kFileEnd}}));
  ASSERT_TRUE(answer);
  EXPECT_FALSE(*answer);
  EXPECT_EQ(world.stat(file)->size, kFileEnd);
}

TEST_F(ManyExtents, ACrashBetweenTwoBatchesLeavesTheOldSize) {
  hold_layout();
  at_third_call = [&] { world.brick.dead = true; };
  EXPECT_FALSE(commit(layout_commit({{0, kFileEnd}})));
  world.crash(0);
  world.start();
  EXPECT_EQ(world.stat(file)->size, kFileEnd);
}

TEST_F(ManyExtents, TheServerMayEndBetweenTwoBatches) {
  at_third_call = [&] { world.loop.at_next_turn([&] { world.stop(); }); };
  EXPECT_FALSE(commit());
}

}  // namespace
}  // namespace pnfsrdma::mds::testing
