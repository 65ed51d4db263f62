// SPDX-License-Identifier: Apache-2.0
#include <thread>

#include "tests/unit/initiator/file/data_path_fixture.h"

namespace pnfsrdma::initiator {
namespace {

TEST_F(DataPathTest, WhatIsWrittenGoesByRdmaAndIsReadBack) {
  write(0, 100'000, 1);
  expect_read(0, 100'000, 1);
  EXPECT_TRUE(holds(brick.memory(), 0, 100'000, 1));
  EXPECT_EQ(path->statistics().rdma_write_bytes.value(), 100'000u);
  EXPECT_EQ(path->statistics().rdma_read_bytes.value(), 100'000u);
  EXPECT_EQ(channel.reads + channel.writes, 0);
  EXPECT_EQ(brick.counters().responder_write_bytes, 100'000u);
}

TEST_F(DataPathTest, WhatAMountShowsOfItselfIsWhatItHoldsAndDid) {
  EXPECT_EQ(path->layouts().files, 0u);
  EXPECT_EQ(path->statistics().write_latency.snapshot().count(), 0u);
  make_file(4 << 20);
  write(0, 100'000, 1);
  expect_read(0, 100'000, 1);
  ASSERT_TRUE(file->fdatasync(cursor));
  const LayoutsView layouts = path->layouts();
  EXPECT_EQ(layouts.files, 1u);
  EXPECT_GE(layouts.segments, 1u);
  EXPECT_GE(layouts.readable_bytes, 100'000u);
  EXPECT_GE(layouts.writable_bytes, 100'000u);
  EXPECT_EQ(path->statistics().write_latency.snapshot().count(), 1u);
  EXPECT_EQ(path->statistics().sync_latency.snapshot().count(), 1u);
  EXPECT_GE(path->statistics().read_latency.snapshot().count(), 1u);
  const std::vector<DeviceView> devices = path->devices();
  ASSERT_EQ(devices.size(), 1u);
  EXPECT_EQ(devices[0].choice, "the best transport of both sides");
  EXPECT_EQ(devices[0].offered.size(), 1u);
  EXPECT_EQ(devices[0].in_flight, 0u);
}

TEST_F(DataPathTest, SteadyStateAsksTheMdsNothing) {
  make_file(4 << 20);
  write(0, 1 << 20, 1);
  write(3 << 20, 1 << 20, 1);
  expect_read(0, 4096, 1);
  for (int i = 0; i < 4; ++i) write(uint64_t(i) << 20, 1 << 20, 2);
  const int before = channel.calls;
  for (int round = 0; round < 5; ++round) {
    for (int i = 0; i < 4; ++i) write(uint64_t(i) << 20, 1 << 20, 3);
  }
  for (int i = 0; i < 1000; ++i) expect_read(uint64_t(i * 7919 % 1000) * 4096, 4096, 3);
  ASSERT_TRUE(file->fdatasync(cursor));
  EXPECT_EQ(channel.calls, before);
}

TEST_F(DataPathTest, AReadOfAWholeFileNeedsOneLayoutGet) {
  make_file(4 << 20);
  for (uint64_t offset : {3u << 20, 0u, 2u << 20, 1u << 20}) expect_read(offset, 1 << 20, 0);
  EXPECT_EQ(channel.layoutgets, 1);
  EXPECT_EQ(channel.reads, 0);
}

TEST_F(DataPathTest, AnIoOverSegmentBordersIsSplitAndWhole) {
  channel.segment_bytes = 64 << 10;
  make_file(4 << 20);
  expect_read(1000, 1'000'000, 0);
  write(12'345, 900'000, 4);
  expect_read(12'345, 900'000, 4);
  expect_read(0, 12'345, 0);
  EXPECT_EQ(channel.reads + channel.writes, 0);
}

TEST_F(DataPathTest, HolesReadAsZerosAndTouchNothing) {
  channel.holes = {0, 2 << 20};
  make_file(3 << 20);
  const BufferSlice sink = buffer->slice(0, 4096);
  std::memset(sink.data(), 0xee, 4096);
  ASSERT_EQ(*file->read(8192, sink), 4096u);
  for (size_t i = 0; i < 4096; ++i) ASSERT_EQ(sink.data()[i], std::byte{0});
  EXPECT_EQ(path->statistics().hole_bytes.value(), 4096u);
  EXPECT_EQ(path->statistics().rdma_reads.value(), 0u);
  expect_read(1 << 20, 1 << 20, 0);
  // A write into the hole asks for a read-write layout.
  write(8192, 4096, 5);
  expect_read(8192, 4096, 5);
}

TEST_F(DataPathTest, ReadsEndAtTheEndOfTheFile) {
  make_file(10'000);
  EXPECT_EQ(*file->read(9'000, buffer->slice(0, 4096)), 1'000u);
  EXPECT_EQ(*file->read(10'000, buffer->slice(0, 4096)), 0u);
  write(20'000, 100, 1);
  EXPECT_EQ(file->size(), 20'100u);
  EXPECT_EQ(*file->read(20'050, buffer->slice(0, 4096)), 50u);
}

TEST_F(DataPathTest, SmallFilesGoThroughTheMds) {
  options_now.threshold_read_size = options_now.threshold_write_size = 64 << 10;
  build(options_now);
  write(0, 4096, 1);
  expect_read(0, 4096, 1);
  EXPECT_EQ(channel.layoutgets, 0);
  write(100'000, 4096, 1);
  EXPECT_EQ(channel.layoutgets, 1);
  EXPECT_EQ(path->statistics().rdma_write_bytes.value(), 4096u);
}

TEST_F(DataPathTest, WithoutLayoutsEverythingGoesThroughTheMds) {
  options_now.layouts = false;
  build(options_now);
  write(0, 10'000, 1);  // durable at once
  write(10'000, 40'000, 1);
  expect_read(0, 50'000, 1);
  ASSERT_TRUE(file->fsync(cursor));
  EXPECT_EQ(channel.layoutgets, 0);
  EXPECT_EQ(channel.commits, 1);
}

TEST_F(DataPathTest, ARefusedLayoutMeansTheMdsForAWhile) {
  channel.refuse_layoutgets({nfs4::Status::kLayoutTryLater});
  write(0, 4096, 1);
  write(4096, 4096, 1);
  EXPECT_EQ(channel.layoutgets, 1);
  EXPECT_EQ(channel.writes, 2);
  EXPECT_GE(path->statistics().fallbacks.value(), 1u);
  std::this_thread::sleep_for(Milliseconds(40));
  write(8192, 4096, 1);
  EXPECT_EQ(channel.layoutgets, 2);
  EXPECT_EQ(channel.writes, 2);
  expect_read(0, 12'288, 1);
}

TEST_F(DataPathTest, ADeadLayoutStateidIsForgottenAndTheOpenOneUsed) {
  write(0, 4096, 1);
  channel.refuse_layoutgets({nfs4::Status::kBadStateid});
  write(4 << 20, 4096, 1);
  EXPECT_EQ(channel.layoutgets, 3);
  // What was grown under the dead one is not there any more, as far as we know.
  EXPECT_EQ(channel.writes, 1);
  EXPECT_EQ(path->statistics().restored_bytes.value(), 4096u);
}

TEST_F(DataPathTest, AStateidThatWasOvertakenIsAskedForAnewAndNothingIsDropped) {
  // By another open, while the open stateid was on its way; then by a recall.
  channel.refuse_layoutgets({nfs4::Status::kOldStateid});
  write(0, 4096, 1);
  EXPECT_EQ(channel.layoutgets, 2);
  channel.refuse_layoutgets({nfs4::Status::kOldStateid});
  write(4 << 20, 4096, 1);
  EXPECT_EQ(channel.layoutgets, 4);
  expect_read(0, 4096, 1);
  EXPECT_EQ(channel.layoutgets, 4);
  EXPECT_EQ(channel.writes, 0);
  EXPECT_EQ(path->statistics().restorations.value(), 0u);
}

TEST_F(DataPathTest, AnAppendGoesToTheEnd) {
  make_file(1000);
  EXPECT_EQ(*file->append(filled(1000, 500, 2)), 1000u);
  EXPECT_EQ(*file->append(filled(1500, 500, 2)), 1500u);
  expect_read(1000, 1000, 2);
}

TEST_F(DataPathTest, ALayoutOfAnUnconnectedClientIsLookedUpInTheHello) {
  channel.void_generation = true;
  write(0, 4096, 1);
  expect_read(0, 4096, 1);
  EXPECT_EQ(channel.writes, 0);
  EXPECT_EQ(path->statistics().rdma_write_bytes.value(), 4096u);
}

TEST_F(DataPathTest, SequentialWritesFetchLayoutsAhead) {
  for (int i = 0; i < 7; ++i) write(uint64_t(i) << 20, 1 << 20, 6);
  EXPECT_GE(path->statistics().layoutgets_prefetched.value(), 1u);
  for (int i = 0; i < 7; ++i) expect_read(uint64_t(i) << 20, 1 << 20, 6);
}

TEST_F(DataPathTest, AShortRunOfWritesInsideAFileFetchesNothingAhead) {
  // What would be fetched may be a hole, and would be filled.
  options_now.layout_bytes_max = 1 << 20;
  make_file(8 << 20);
  for (int i = 0; i < 64; ++i) write((4 << 20) + i * 4096, 4096, 6);
  EXPECT_EQ(channel.layoutgets, 1);
  EXPECT_EQ(path->statistics().layoutgets_prefetched.value(), 0u);
}

TEST_F(DataPathTest, ManyThreadsShareOneQueuePair) {
  constexpr int kThreads = 8;
  constexpr size_t kPart = 512 << 10;
  make_file(kThreads * kPart);
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      auto own = path->buffers().take();
      if (!own) return void(++wrong);
      for (int round = 0; round < 40; ++round) {
        const uint64_t offset = t * kPart + (round * 13 % 16) * 32768;
        const BufferSlice slice = (*own)->slice(0, 32768);
        for (size_t i = 0; i < slice.size(); ++i) slice.data()[i] = pattern(offset + i, uint8_t(round));
        if (!file->write(offset, slice)) ++wrong;
        std::memset(slice.data(), 0, slice.size());
        const auto count = file->read(offset, slice);
        if (!count || *count != slice.size() || !holds(slice.data(), offset, slice.size(), uint8_t(round)))
          ++wrong;
        ErrorCursor mine = file->error_cursor();
        if (round % 8 == 0 && !file->fsync(mine)) ++wrong;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(brick.connections, 1);
  EXPECT_EQ(channel.reads + channel.writes, 0);
}

TEST_F(DataPathTest, AnAppendGoesWhereTheFileEndsNowAlsoWhenSomebodyElseHasCutIt) {
  build(options_now);
  EXPECT_EQ(*file->append(filled(0, 4096, 1)), 0u);
  EXPECT_EQ(*file->append(filled(4096, 4096, 1)), 4096u);
  ASSERT_TRUE(file->settle());
  channel.size = 100;
  file->server_size(100, file->local_version(), steady_now());
  EXPECT_EQ(*file->append(filled(100, 4096, 1)), 100u);
}

TEST_F(DataPathTest, AnAppendThatFailedLeavesNoHole) {
  options_now.threshold_write_size = 1 << 20;
  build(options_now);
  EXPECT_EQ(*file->append(filled(0, 4096, 1)), 0u);
  channel.refuse_writes = nfs4::Status::kNoSpc;
  EXPECT_EQ(file->append(filled(4096, 4096, 1)).error().number(), ENOSPC);
  channel.refuse_writes = nfs4::Status::kOk;
  EXPECT_EQ(*file->append(filled(4096, 4096, 1)), 4096u);
}

}  // namespace
}  // namespace pnfsrdma::initiator
