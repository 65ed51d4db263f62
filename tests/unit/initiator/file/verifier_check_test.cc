// SPDX-License-Identifier: Apache-2.0
#include <future>

#include "shared/initiator/cancellation.h"
#include "tests/unit/initiator/file/data_path_fixture.h"

// What fsync may answer when somebody else than the client's own connection has flushed: whether the brick
// that took the writes still had them then, only the brick can say.
namespace pnfsrdma::initiator {
namespace {

class VerifierTest : public DataPathTest {
 protected:
  void SetUp() override {
    make_file(1 << 20);
    write(0, 4096, 1);
    ASSERT_TRUE(file->fsync(cursor));
    ASSERT_TRUE(file->settle());
    events.take();
  }
  uint64_t lost() const { return path->statistics().lost_writes.value(); }
  // The file lies on another brick now, and the MDS knows the first one no more.
  void move_for_good_to(FakeBrick& other) {
    std::memcpy(other.memory(), brick.memory(), 1 << 20);
    channel.move_to(other);
    channel.forget_first_device = true;
    path->layouts_lost();
    brick.ticket = 9;
    brick.cut_connection();
  }
};

TEST_F(VerifierTest, WithoutALayoutTheBrickIsAskedBehindTheCommit) {
  write(4096, 4096, 2);
  path->layouts_lost();
  EXPECT_TRUE(file->fdatasync(cursor));
  EXPECT_EQ(events.take(), (std::vector<std::string>{"commit", "persist"}));
}

// The connection looks alive: nobody has used it since.
TEST_F(VerifierTest, WithoutALayoutTheVerifierOfAnOldHelloSaysNothing) {
  ErrorCursor second = file->error_cursor();
  write(4096, 4096, 2);
  brick.set_verifier(77);
  path->layouts_lost();
  const auto synced = file->fsync(cursor);
  ASSERT_FALSE(synced);
  EXPECT_EQ(synced.error().number(), EIO);
  EXPECT_TRUE(file->fsync(cursor));
  EXPECT_FALSE(file->fsync(second));
  EXPECT_TRUE(file->fsync(second));
  EXPECT_EQ(lost(), 1u);
}

TEST_F(VerifierTest, WithoutALayoutADeadConnectionIsMadeAnewToAsk) {
  write(4096, 4096, 2);
  brick.cut_connection();
  path->layouts_lost();
  EXPECT_TRUE(file->fsync(cursor));
  EXPECT_EQ(lost(), 0u);
}

TEST_F(VerifierTest, WithoutALayoutAnotherVerifierIsDoubtedOnceAndTheFileGoesOn) {
  write(4096, 4096, 2);
  brick.set_verifier(77);
  path->layouts_lost();
  EXPECT_FALSE(file->fsync(cursor));
  write(8192, 4096, 3);
  EXPECT_TRUE(file->fsync(cursor));
  path->layouts_lost();
  write(8192, 4096, 4);
  EXPECT_TRUE(file->fsync(cursor));
}

TEST_F(VerifierTest, AChangedVerifierOnALiveConnectionIsNotHeldAgainstLaterWrites) {
  write(4096, 4096, 2);
  brick.set_verifier(77);
  EXPECT_FALSE(file->fsync(cursor));
  write(4096, 4096, 3);
  EXPECT_TRUE(file->fsync(cursor));
  write(8192, 4096, 3);
  EXPECT_TRUE(file->fsync(cursor));
  EXPECT_EQ(lost(), 1u);
}

TEST_F(VerifierTest, AFailedFlushIsHeardOnce) {
  write(4096, 4096, 2);
  brick.fail_flush(77);
  EXPECT_FALSE(file->fsync(cursor));
  EXPECT_TRUE(file->fsync(cursor));
  write(4096, 4096, 3);
  EXPECT_TRUE(file->fsync(cursor));
  EXPECT_EQ(lost(), 1u);
}

// The verifier has not changed: nothing is lost, the next fsync tries again.
TEST_F(VerifierTest, AFailedFlushThatLostNothingIsTriedAgain) {
  write(4096, 4096, 2);
  brick.fail_flush(0);
  EXPECT_EQ(file->fsync(cursor).error().number(), EIO);
  events.take();
  EXPECT_TRUE(file->fdatasync(cursor));
  EXPECT_EQ(events.take(), std::vector<std::string>{"persist 4096+4096"});
  EXPECT_EQ(lost(), 0u);
}

TEST_F(VerifierTest, ALossThatWasFoundByAFlushThatFailedIsHeardOnce) {
  write(4096, 4096, 2);
  channel.refuse_layoutgets({nfs4::Status::kBadLayout, nfs4::Status::kBadLayout});
  write(1 << 20, 4096, 2);           // through the MDS, durable at once
  write((1 << 20) + 4096, 4096, 2);  // through the MDS
  ASSERT_EQ(channel.writes, 2);
  brick.set_verifier(77);
  channel.refuse_commits = nfs4::Status::kIo;
  EXPECT_FALSE(file->fsync(cursor));
  EXPECT_FALSE(file->fsync(cursor));  // COMMIT fails still
  channel.refuse_commits = nfs4::Status::kOk;
  EXPECT_TRUE(file->fsync(cursor));
  EXPECT_EQ(lost(), 1u);
}

// Some of it lies under a layout that is held, some under one that is being given back.
TEST_F(VerifierTest, AllThatABrickHasLostIsHeardOnce) {
  make_file(2 << 20);
  write(0, 4096, 2);
  write(1 << 20, 4096, 2);
  ASSERT_EQ(recall(1 << 20, 1 << 20, channel.recall_stateid()).status, nfs4::Status::kOk);
  brick.set_verifier(77);
  channel.refuse_commits = nfs4::Status::kIo;
  EXPECT_FALSE(file->fsync(cursor));
  channel.refuse_commits = nfs4::Status::kOk;
  EXPECT_TRUE(file->fsync(cursor));
  EXPECT_EQ(lost(), 1u);
}

TEST_F(VerifierTest, WhatTheMdsFlushesByLayoutCommitIsAskedForToo) {
  channel.flush_methods = nfs4::kFlushLayoutCommit;
  build(quick_options(), 1 << 20);
  write(4096, 4096, 2);
  events.take();
  EXPECT_TRUE(file->fdatasync(cursor));
  EXPECT_EQ(events.take(), (std::vector<std::string>{"layoutcommit persist", "persist"}));
  write(4096, 4096, 3);
  brick.set_verifier(77);
  EXPECT_FALSE(file->fdatasync(cursor));
  EXPECT_TRUE(file->fdatasync(cursor));
  write(4096, 4096, 4);
  EXPECT_TRUE(file->fdatasync(cursor));
}

// The layout that is held now says another brick, where nothing of ours is missing.
TEST_F(VerifierTest, TheBrickThatTookTheWritesIsAskedEvenIfAnotherOneHoldsTheFileNow) {
  FakeBrick other(*brick_transport, "other:0", events);
  write(4096, 4096, 2);
  std::memcpy(other.memory(), brick.memory(), 1 << 20);
  channel.move_to(other);
  path->layouts_lost();
  write(8192, 4096, 2);
  brick.set_verifier(77);
  EXPECT_FALSE(file->fsync(cursor));
  EXPECT_TRUE(file->fsync(cursor));
  write(8192, 4096, 3);
  EXPECT_TRUE(file->fsync(cursor));
  file.reset();
  path.reset();
}

TEST_F(VerifierTest, ABrickThatIsNotThereAnyMoreHasLostWhatWasNotFlushed) {
  FakeBrick other(*brick_transport, "other:0", events);
  write(4096, 4096, 2);
  move_for_good_to(other);
  EXPECT_FALSE(file->fsync(cursor));
  EXPECT_TRUE(file->fsync(cursor));
  file.reset();
  path.reset();
}

// All that it took has been written again, on another brick.
TEST_F(VerifierTest, ABrickThatHoldsNothingIsNotAsked) {
  FakeBrick other(*brick_transport, "other:0", events);
  write(1 << 20, 4096, 2);
  move_for_good_to(other);
  ASSERT_TRUE(file->settle());
  write(4096, 4096, 2);
  EXPECT_TRUE(file->fsync(cursor));
  EXPECT_EQ(lost(), 0u);
  file.reset();
  path.reset();
}

TEST_F(VerifierTest, GrowthThatWasWrittenAgainIsNotLostWithTheBrickThatHadIt) {
  write(1 << 20, 4096, 2);
  // The host of the brick had no power for a moment: the layouts are gone, what lay behind the end of the
  // file too.
  brick.withdraw(0, FakeBrick::kBytes);
  std::memset(brick.memory() + (1 << 20), 0, 4096);
  channel.forget_layouts();
  brick.set_verifier(77);
  brick.cut_connection();
  path->layout_stateid_gone(channel.stateid());
  EXPECT_TRUE(file->fsync(cursor));
  EXPECT_TRUE(holds(brick.memory() + (1 << 20), 1 << 20, 4096, 2));
  EXPECT_EQ(lost(), 0u);
}

// The MDS and the brick are well, the way between client and brick is not.
class SilentBrickTest : public VerifierTest {
 protected:
  explicit SilentBrickTest(Persistence persistence = Persistence::kHard) {
    options_now.persistence = persistence;
  }
  void SetUp() override {
    options_now.io_timeout = patience;
    VerifierTest::SetUp();
    write(4096, 4096, 2);
    brick.ticket = 9;
    brick.cut_connection();
    path->layouts_lost();
  }
  std::future<Result<>> fsync_elsewhere(Cancellation* cancellation = nullptr) {
    return std::async(std::launch::async, [this, cancellation] {
      std::optional<CancellationScope> scope;
      if (cancellation != nullptr) scope.emplace(*cancellation);
      return file->fsync(cursor);
    });
  }
  static bool waits(std::future<Result<>>& synced) {
    return synced.wait_for(Milliseconds(500)) == std::future_status::timeout;
  }
  void heal() { brick.ticket = channel.ticket = 9; }

  Milliseconds patience{50};
};

TEST_F(SilentBrickTest, AHardMountWaitsForItsAnswer) {
  auto synced = fsync_elsewhere();
  ASSERT_TRUE(waits(synced));
  heal();
  EXPECT_TRUE(synced.get());
  EXPECT_EQ(lost(), 0u);
}

TEST_F(SilentBrickTest, AHardMountHearsWhatWasLostMeanwhile) {
  auto synced = fsync_elsewhere();
  ASSERT_TRUE(waits(synced));
  brick.set_verifier(77);
  heal();
  EXPECT_EQ(synced.get().error().number(), EIO);
  EXPECT_TRUE(file->fsync(cursor));
}

TEST_F(SilentBrickTest, AKilledProcessWaitsNoLonger) {
  struct Killed final : Cancellation {
    std::atomic<bool> killed = false;
    bool requested() override { return killed; }
  } cancellation;
  auto synced = fsync_elsewhere(&cancellation);
  ASSERT_TRUE(waits(synced));
  cancellation.killed = true;
  EXPECT_EQ(synced.get().error().number(), EINTR);
  // Nothing of it is forgotten.
  brick.set_verifier(77);
  heal();
  EXPECT_EQ(file->fsync(cursor).error().number(), EIO);
}

// Another process has the file open by the same descriptor.
TEST_F(SilentBrickTest, AKilledProcessHearsOfNoLossForTheOthers) {
  struct Killed final : Cancellation {
    bool requested() override { return true; }
  } killed;
  file->inside().dirty.lost();
  EXPECT_EQ(fsync_elsewhere(&killed).get().error().number(), EINTR);
  heal();
  EXPECT_EQ(file->fsync(cursor).error().number(), EIO);
  EXPECT_TRUE(file->fsync(cursor));
}

TEST_F(SilentBrickTest, TheEndOfTheMountEndsTheWait) {
  auto synced = fsync_elsewhere();
  ASSERT_TRUE(waits(synced));
  path->abort();
  EXPECT_EQ(synced.get().error().number(), ESHUTDOWN);
}

TEST_F(SilentBrickTest, AsManyWaitAsLike) {
  std::vector<std::future<Result<>>> waiting;
  for (int i = 0; i < 8; ++i) {
    waiting.push_back(std::async(std::launch::async, [this] {
      ErrorCursor own = file->error_cursor();
      return file->fsync(own);
    }));
  }
  for (auto& synced : waiting) ASSERT_TRUE(waits(synced));
  heal();
  for (auto& synced : waiting) EXPECT_TRUE(synced.get());
  EXPECT_TRUE(file->fsync(cursor));
}

// A recall is not held up by the fsync that waits.
TEST_F(SilentBrickTest, AnotherFlushOfTheFileIsNotHeldUp) {
  auto synced = fsync_elsewhere();
  ASSERT_TRUE(waits(synced));
  const auto begin = clock.now();
  EXPECT_FALSE(file->inside().flusher.flush(true));
  EXPECT_LT(clock.now() - begin, std::chrono::seconds(5));
  heal();
  EXPECT_TRUE(synced.get());
}

class SoftMountTest : public SilentBrickTest {
 protected:
  SoftMountTest() : SilentBrickTest(Persistence::kSoft) {}
};

TEST_F(SoftMountTest, SaysEioAndTriesAgainLater) {
  EXPECT_EQ(file->fsync(cursor).error().number(), EIO);
  heal();
  EXPECT_TRUE(file->fsync(cursor));
}

class CrowdTest : public SoftMountTest {
 protected:
  CrowdTest() { patience = Milliseconds(500); }
};

// One descriptor, which they share.
TEST_F(CrowdTest, FsyncsThatWaitForOneFindOutTogetherThatTheBrickIsSilent) {
  constexpr int kThreads = 15;
  std::atomic<int> started = 0;
  channel.during_commit = [&] {
    while (started < kThreads) std::this_thread::sleep_for(Milliseconds(1));
  };
  std::vector<std::future<Result<>>> synced;
  for (int i = 0; i < kThreads; ++i) {
    synced.push_back(std::async(std::launch::async, [&] {
      ++started;
      return file->fsync(cursor);
    }));
  }
  for (auto& one : synced) EXPECT_EQ(one.get().error().number(), EIO);
  // Not one after the other.
  EXPECT_LT(channel.commits, kThreads / 2);
}

class SofterrMountTest : public SilentBrickTest {
 protected:
  SofterrMountTest() : SilentBrickTest(Persistence::kSoftError) {}
};

TEST_F(SofterrMountTest, SaysThatTimeWasUpAndTriesAgainLater) {
  EXPECT_EQ(file->fsync(cursor).error().number(), ETIMEDOUT);
  brick.set_verifier(77);
  heal();
  EXPECT_EQ(file->fsync(cursor).error().number(), EIO);
}

}  // namespace
}  // namespace pnfsrdma::initiator
