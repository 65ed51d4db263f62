// SPDX-License-Identifier: Apache-2.0
#include <thread>

#include "tests/doubles/seeded_random.h"
#include "tests/unit/initiator/file/data_path_fixture.h"

// What was grown and not committed when a server was restarted is written again.
namespace pnfsrdma::initiator {
namespace {

class RestoreTest : public DataPathTest {
 protected:
  static constexpr uint64_t kEnd = uint64_t{2} << 20;

  void SetUp() override { make_file(kEnd); }

  // What an MDS does when it starts again: revokes all grants, zeroes what lies behind the end of the file.
  void revoke_everything() {
    brick.withdraw(0, FakeBrick::kBytes);
    std::memset(brick.memory() + channel.size, 0, FakeBrick::kBytes - channel.size);
    channel.forget_layouts();
  }
  void restart_mds() {
    revoke_everything();
    path->layouts_lost();
  }
  void restart_brick() {
    revoke_everything();
    brick.ticket = channel.ticket = ++ticket_;
    brick.cut_connection();
  }
  // The flush finds its layout revoked; while the MDS is asked to flush, somebody else restores the growth.
  void restore_during_the_next_flush(std::function<void()> afterwards = [] {}) {
    revoke_everything();
    channel.during_commit = [this, afterwards] {
      channel.during_commit = nullptr;
      brick.set_verifier(77);
      path->layouts_lost();
      EXPECT_TRUE(file->settle());
      EXPECT_EQ(restorations(), 1u);
      afterwards();
    };
  }
  void expect_file(uint64_t offset, size_t length, uint8_t seed) {
    EXPECT_GE(channel.size, offset + length);
    EXPECT_TRUE(holds(brick.memory() + offset, offset, length, seed)) << "seed " << int(seed);
  }
  uint64_t restorations() const { return path->statistics().restorations.value(); }
  uint64_t lost() const { return path->statistics().lost_writes.value(); }

 private:
  uint8_t ticket_ = 1;
};

TEST_F(RestoreTest, FsyncOfGrowthSucceedsAfterTheMdsWasRestarted) {
  write(kEnd, 300'000, 1);
  restart_mds();
  EXPECT_TRUE(file->fsync(cursor));
  expect_file(kEnd, 300'000, 1);
  EXPECT_EQ(restorations(), 1u);
  EXPECT_EQ(path->statistics().restored_bytes.value(), 300'000u);
  EXPECT_EQ(lost(), 0u);
}

TEST_F(RestoreTest, ItIsDurableWhenItWasWrittenAgain) {
  write(kEnd, 4096, 1);
  restart_mds();
  events.take();
  ASSERT_TRUE(file->fdatasync(cursor));
  const auto happened = events.take();
  ASSERT_FALSE(happened.empty());
  EXPECT_EQ(happened.back(), "durable write");
}

TEST_F(RestoreTest, ARestartThatIsNoticedByTheLayoutCommitIsRestoredDurablyToo) {
  write(kEnd, 4096, 1);
  channel.during_layoutcommit = [&] {
    channel.during_layoutcommit = nullptr;
    revoke_everything();
  };
  events.take();
  ASSERT_TRUE(file->fsync(cursor));
  expect_file(kEnd, 4096, 1);
  EXPECT_EQ(events.take().back(), "durable write");
  EXPECT_EQ(lost(), 0u);
}

TEST_F(RestoreTest, FsyncOfGrowthSucceedsAfterTheBrickWasRestarted) {
  write(kEnd, 300'000, 1);
  restart_brick();
  EXPECT_TRUE(file->fsync(cursor));
  expect_file(kEnd, 300'000, 1);
}

TEST_F(RestoreTest, FsyncOfGrowthSucceedsAfterBothWereRestarted) {
  write(kEnd, 300'000, 1);
  restart_brick();
  path->layouts_lost();
  EXPECT_TRUE(file->fsync(cursor));
  expect_file(kEnd, 300'000, 1);
}

TEST_F(RestoreTest, CloseRestoresToo) {
  write(kEnd, 4096, 1);
  restart_mds();
  EXPECT_TRUE(file->close(cursor));
  expect_file(kEnd, 4096, 1);
}

TEST_F(RestoreTest, AReadAfterARestartSeesWhatWasWritten) {
  write(kEnd, 100'000, 1);
  restart_mds();
  expect_read(kEnd, 100'000, 1);
}

TEST_F(RestoreTest, AReadUnderALayoutTakenAfterARestartSeesWhatWasWrittenBefore) {
  write(kEnd, 4096, 1);
  restart_mds();
  write(kEnd + 8192, 4096, 2);
  expect_read(kEnd, 4096, 1);
  expect_read(kEnd + 8192, 4096, 2);
  EXPECT_TRUE(file->fsync(cursor));
  expect_file(kEnd, 4096, 1);
  expect_file(kEnd + 8192, 4096, 2);
}

TEST_F(RestoreTest, ALaterWriteToTheSamePlaceIsNotOvertakenByTheOldCopy) {
  write(kEnd, 64 << 10, 1);
  write(kEnd + 4096, 4096, 2);
  restart_mds();
  write(kEnd + 8192, 4096, 3);
  EXPECT_TRUE(file->fsync(cursor));
  expect_file(kEnd, 4096, 1);
  expect_file(kEnd + 4096, 4096, 2);
  expect_file(kEnd + 8192, 4096, 3);
  expect_file(kEnd + 12288, (64 << 10) - 12288, 1);
}

TEST_F(RestoreTest, OverwritesAreNeitherKeptNorWrittenAgain) {
  write(0, 1 << 20, 1);
  EXPECT_FALSE(file->inside().kept.any());
  restart_mds();
  EXPECT_TRUE(file->fsync(cursor));
  expect_file(0, 1 << 20, 1);
  EXPECT_EQ(restorations(), 0u);
}

TEST_F(RestoreTest, WhatIsCommittedIsNotKept) {
  write(kEnd, 1 << 20, 1);
  EXPECT_TRUE(file->inside().kept.any());
  ASSERT_TRUE(file->fsync(cursor));
  EXPECT_FALSE(file->inside().kept.any());
  EXPECT_EQ(file->inside().mount.kept_memory.used(), 0u);
  restart_mds();
  EXPECT_TRUE(file->fsync(cursor));
  EXPECT_EQ(restorations(), 0u);
}

TEST_F(RestoreTest, GrowthUnderAnotherVerifierIsWrittenAgain) {
  write(kEnd, 4096, 1);
  brick.set_verifier(77);
  std::memset(brick.memory() + kEnd, 0, 4096);  // power failed there
  EXPECT_TRUE(file->fsync(cursor));
  expect_file(kEnd, 4096, 1);
  EXPECT_EQ(lost(), 0u);
}

// The flush has it in its hands, and hears only then that its brick had no power for a moment.
TEST_F(RestoreTest, WhatIsWrittenAgainDuringAFlushIsNotLost) {
  write(kEnd, 4096, 1);
  restore_during_the_next_flush();
  EXPECT_TRUE(file->fsync(cursor));
  expect_file(kEnd, 4096, 1);
  EXPECT_EQ(lost(), 0u);
}

TEST_F(RestoreTest, WhatIsWrittenAgainDuringAFlushThatFailsIsNotLost) {
  write(kEnd, 4096, 1);
  restore_during_the_next_flush();
  channel.refuse_commits = nfs4::Status::kIo;
  EXPECT_EQ(file->fsync(cursor).error().number(), EIO);
  channel.refuse_commits = nfs4::Status::kOk;
  EXPECT_TRUE(file->fsync(cursor));
  expect_file(kEnd, 4096, 1);
  EXPECT_EQ(lost(), 0u);
}

// It is below the end of the file by then, and nobody keeps it.
TEST_F(RestoreTest, WhatIsOverwrittenAfterThatIsLostAsAnyOverwrite) {
  write(kEnd, 4096, 1);
  restore_during_the_next_flush([&] {
    write(kEnd, 4096, 2);
    brick.set_verifier(78);
    brick.cut_connection();
    write(0, 4096, 2);
  });
  EXPECT_EQ(file->fsync(cursor).error().number(), EIO);
  EXPECT_TRUE(file->fsync(cursor));
}

TEST_F(RestoreTest, GrowthThatIsLostIsHeardOnceEvenIfItsBrickIsAnotherOneToo) {
  write(kEnd, 4096, 1);
  revoke_everything();
  path->layout_stateid_gone(channel.stateid());
  brick.set_verifier(77);
  channel.refuse_writes = nfs4::Status::kNoSpc;
  EXPECT_EQ(file->fsync(cursor).error().number(), ENOSPC);
  channel.refuse_writes = nfs4::Status::kOk;
  EXPECT_TRUE(file->fsync(cursor));
  EXPECT_EQ(lost(), 1u);
}

TEST_F(RestoreTest, AnOverwriteUnderAnotherVerifierIsStillEio) {
  write(kEnd, 4096, 1);
  write(0, 4096, 1);
  brick.set_verifier(77);
  EXPECT_EQ(file->fsync(cursor).error().number(), EIO);
  expect_file(kEnd, 4096, 1);
  EXPECT_TRUE(file->fsync(cursor));
}

TEST_F(RestoreTest, WhatTheServerRefusesToTakeAgainIsLostAndReportedOnce) {
  write(kEnd, 4096, 1);
  restart_mds();
  channel.refuse_writes = nfs4::Status::kNoSpc;
  EXPECT_EQ(file->fsync(cursor).error().number(), ENOSPC);
  channel.refuse_writes = nfs4::Status::kOk;
  EXPECT_TRUE(file->fsync(cursor));
  EXPECT_EQ(file->size(), kEnd);
  EXPECT_EQ(file->inside().mount.kept_memory.used(), 0u);
}

TEST_F(RestoreTest, GrowthThatGoesThroughTheMdsTakesNoRoom) {
  make_file(0);
  file->set_thresholds(1 << 20, 1 << 20);
  write(0, 4096, 1);
  file->set_thresholds(0, 0);
  channel.refuse_layoutgets({nfs4::Status::kLayoutTryLater, nfs4::Status::kLayoutTryLater});
  write(4096, 4096, 1);
  EXPECT_EQ(channel.writes, 2);
  EXPECT_EQ(file->inside().mount.kept_memory.used(), 0u);
}

TEST_F(RestoreTest, AWriteThatWaitsLongForRoomSaysSo) {
  options_now.kept_bytes_max = KeptMemory::kChunkBytes;
  options_now.io_timeout = Milliseconds(1100);
  make_file(0);
  KeptMemory& memory = file->inside().mount.kept_memory;
  KeptMemory::Chunk other_file = memory.take();
  ::testing::internal::CaptureStderr();
  write(0, 4096, 1);
  EXPECT_NE(::testing::internal::GetCapturedStderr().find("growth-waits"), std::string::npos);
  EXPECT_EQ(channel.writes, 1);
  memory.give_back(std::move(other_file));
  write(4096, 4096, 1);
  EXPECT_EQ(channel.writes, 1);
}

TEST_F(RestoreTest, MuchGrowthIsCommittedWithoutBeingAsked) {
  options_now.kept_bytes_max = 2 << 20;
  make_file(0);
  for (uint64_t at = 0; at < FakeBrick::kBytes; at += 256 << 10) write(at, 256 << 10, 1);
  EXPECT_GE(channel.size, FakeBrick::kBytes / 2);
  EXPECT_LE(file->inside().mount.kept_memory.used(), options_now.kept_bytes_max);
  EXPECT_EQ(channel.writes, 0);
  // Half of the limit each, not one for each write.
  EXPECT_LE(channel.layoutcommits, 9);
}

TEST_F(RestoreTest, MemoryStaysBoundedWhileTheMdsIsSilent) {
  options_now.kept_bytes_max = 1 << 20;
  make_file(0);
  channel.hold_async_commits = true;
  std::atomic<uint64_t> done = 0;
  std::thread writer([&] {
    for (uint64_t at = 0; at < (4 << 20); at += 256 << 10) {
      write(at, 256 << 10, 1);
      done = at + (256 << 10);
    }
  });
  for (int i = 0; i < 500 && done < (1 << 20); ++i) std::this_thread::sleep_for(Milliseconds(10));
  std::this_thread::sleep_for(Milliseconds(100));
  EXPECT_EQ(done, 1u << 20);
  EXPECT_LE(file->inside().mount.kept_memory.used(), options_now.kept_bytes_max);
  channel.hold_async_commits = false;
  channel.release_async_commits();
  writer.join();
  EXPECT_TRUE(file->fsync(cursor));
  expect_file(0, 4 << 20, 1);
}

TEST_F(RestoreTest, ACommitOnItsWayWhenTheMdsDiesIsRestoredInTheBackground) {
  options_now.kept_bytes_max = 1 << 20;
  make_file(0);
  channel.hold_async_commits = true;
  write(0, 256 << 10, 1);
  write(256 << 10, 256 << 10, 1);  // half of the limit: a commit is on its way
  restart_mds();
  channel.hold_async_commits = false;
  channel.release_async_commits();
  for (int i = 0; i < 500 && restorations() == 0; ++i) std::this_thread::sleep_for(Milliseconds(10));
  expect_file(0, 512 << 10, 1);
  EXPECT_TRUE(file->fsync(cursor));
  EXPECT_EQ(lost(), 0u);
}

TEST_F(RestoreTest, RestartsUnderManyWritersLoseNothing) {
  make_file(0);
  std::atomic<bool> stop = false;
  std::atomic<int> failed = 0;
  constexpr uint64_t kShare = FakeBrick::kBytes / 4;
  std::array<std::vector<uint8_t>, 4> seeds;  // of each 64 KiB
  std::vector<std::thread> writers;
  for (uint64_t t = 0; t < 4; ++t) {
    seeds[t].assign(kShare / (64 << 10), 0);
    writers.emplace_back([&, t] {
      auto own = path->buffers().take();
      ErrorCursor seen = file->error_cursor();
      SeededRandom chance(t);
      for (uint8_t seed = 1; !stop; seed = seed == 255 ? 1 : seed + 1) {
        const uint64_t place = chance.next_u64() % seeds[t].size();
        const uint64_t offset = t * kShare + place * (64 << 10);
        const BufferSlice slice = (*own)->slice(0, 64 << 10);
        for (size_t i = 0; i < slice.size(); ++i) slice.data()[i] = pattern(offset + i, seed);
        if (!file->write(offset, slice)) ++failed;
        seeds[t][place] = seed;
        if (seed % 16 == 0 && !file->fsync(seen)) ++failed;
        std::memset(slice.data(), 0, slice.size());
        if (!file->read(offset, slice) || !holds(slice.data(), offset, slice.size(), seed)) ++failed;
      }
    });
  }
  for (int i = 0; i < 20; ++i) {
    std::this_thread::sleep_for(Milliseconds(10));
    if (i % 2 == 0) {
      // As in the MDS: nothing is written or granted while the memory behind the end is zeroed.
      const auto quiet = channel.quiet();
      restart_mds();
    } else {
      brick.cut_connection();
    }
  }
  stop = true;
  for (auto& writer : writers) writer.join();
  EXPECT_EQ(failed, 0);
  ASSERT_TRUE(file->fsync(cursor));
  for (uint64_t t = 0; t < 4; ++t) {
    for (uint64_t place = 0; place < seeds[t].size(); ++place) {
      if (seeds[t][place] == 0) continue;
      expect_file(t * kShare + place * (64 << 10), 64 << 10, seeds[t][place]);
    }
  }
  EXPECT_EQ(lost(), 0u);
}

// Others may have seen it, and written over it, since the close whose commit has found it lost.
TEST_F(RestoreTest, WhatWasWrittenAgainIsNotWrittenAThirdTime) {
  write(kEnd, 4096, 1);
  revoke_everything();
  ASSERT_TRUE(file->close(cursor));
  EXPECT_EQ(restorations(), 1u);
  EXPECT_FALSE(file->inside().dirty.keeps_copies());
  std::memset(brick.memory() + kEnd, 7, 4096);
  ++channel.write_verifier;
  EXPECT_TRUE(file->fsync(cursor));
  EXPECT_EQ(brick.memory()[kEnd], std::byte{7});
}

}  // namespace
}  // namespace pnfsrdma::initiator
