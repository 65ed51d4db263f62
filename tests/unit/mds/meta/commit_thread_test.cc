// SPDX-License-Identifier: Apache-2.0
#include "server/mds/meta/commit_thread.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <semaphore>
#include <thread>
#include <vector>

namespace pnfsrdma::mds {
namespace {

// A medium that syncs when it is let.
class GroupCommit : public ::testing::Test {
 protected:
  std::unique_ptr<CommitThread> start(Milliseconds state_delay) {
    return std::make_unique<CommitThread>(
        loop_,
        CommitThread::Hooks{
            .sync = [this]() -> Result<> {
              ++syncs_;
              gate_.acquire();
              if (broken_) return fail(EIO, "the medium fails");
              return {};
            },
            .progress = [this](Sequence synced) { progress_.push_back(synced); },
            .failed = [this](const Error&) { failed_ = true; },
        },
        state_delay);
  }
  template <typename Condition>
  bool run_until(Condition condition) {
    const SteadyTime end = clock_.now() + Milliseconds(5000);
    while (!condition() && clock_.now() < end) loop_.run_once(Milliseconds(5));
    return condition();
  }

  SystemClock clock_;
  EventLoop loop_{clock_};
  std::counting_semaphore<1000> gate_{0};
  std::atomic<int> syncs_ = 0;
  std::atomic<bool> broken_ = false;
  std::vector<Sequence> progress_;
  bool failed_ = false;
};

TEST_F(GroupCommit, OneSyncCoversAllThatCameWhileTheLastOneRan) {
  auto thread = start(Milliseconds(60000));
  thread->committed(1, CommitKind::kNamespace);
  ASSERT_TRUE(run_until([&] { return syncs_ == 1; }));
  for (Sequence sequence = 2; sequence <= 50; ++sequence) thread->committed(sequence, CommitKind::kNamespace);
  gate_.release(100);
  ASSERT_TRUE(run_until([&] { return !progress_.empty() && progress_.back() == 50; }));
  EXPECT_EQ(progress_, (std::vector<Sequence>{1, 50}));
  EXPECT_EQ(syncs_, 2);
}

TEST_F(GroupCommit, AStateCommitWaitsForANamespaceCommitToShareItsSync) {
  gate_.release(100);
  auto thread = start(Milliseconds(60000));
  thread->committed(1, CommitKind::kState);
  for (int i = 0; i < 5; ++i) loop_.run_once(Milliseconds(5));
  EXPECT_EQ(syncs_, 0);
  thread->committed(2, CommitKind::kNamespace);
  ASSERT_TRUE(run_until([&] { return !progress_.empty(); }));
  EXPECT_EQ(progress_, (std::vector<Sequence>{2}));
}

TEST_F(GroupCommit, AStateCommitAloneIsSyncedAfterTheDelay) {
  gate_.release(100);
  auto thread = start(Milliseconds(30));
  thread->committed(1, CommitKind::kState);
  ASSERT_TRUE(run_until([&] { return !progress_.empty(); }));
  thread->committed(2, CommitKind::kState);
  ASSERT_TRUE(run_until([&] { return progress_.size() == 2; }));
  EXPECT_EQ(progress_, (std::vector<Sequence>{1, 2}));
}

TEST_F(GroupCommit, AnIdleThreadSyncsNothing) {
  gate_.release(100);
  auto thread = start(Milliseconds(1));
  thread->committed(1, CommitKind::kNamespace);
  ASSERT_TRUE(run_until([&] { return !progress_.empty(); }));
  for (int i = 0; i < 10; ++i) loop_.run_once(Milliseconds(3));
  EXPECT_EQ(syncs_, 1);
}

// A medium that is memory, until it is slow; and who has synced it.
class QuickMedium : public GroupCommit {
 protected:
  QuickMedium() {
    thread_ = std::make_unique<CommitThread>(
        loop_,
        CommitThread::Hooks{.sync = [this]() -> Result<> {
                              const bool here = std::this_thread::get_id() == loop_thread_;
                              if (here) ++here_;
                              ++syncs_;
                              if (here && meanwhile_) meanwhile_();
                              if (slow_) sleep_for(Milliseconds(1));
                              if (broken_) return fail(EIO, "the medium fails");
                              return {};
                            },
                            .progress = [this](Sequence synced) { progress_.push_back(synced); },
                            .failed = [this](const Error&) { failed_ = true; },
                            .may_sync_here = [this] { return allowed_; }},
        Milliseconds(60000));
  }
  void commit(Sequence count) {
    for (const Sequence last = committed_ + count; committed_ < last;) {
      thread_->committed(++committed_, CommitKind::kNamespace);
      ASSERT_TRUE(
          run_until([&] { return failed_ || (!progress_.empty() && progress_.back() == committed_); }));
    }
  }

  const std::thread::id loop_thread_ = std::this_thread::get_id();
  std::atomic<int> here_ = 0;
  std::atomic<bool> slow_ = false;
  bool allowed_ = true;
  std::function<void()> meanwhile_;  // while the loop syncs
  Sequence committed_ = 0;
  std::unique_ptr<CommitThread> thread_;
};

TEST_F(QuickMedium, IsSyncedByTheLoopOnceThatIsKnown) {
  commit(CommitThread::kQuickInARow);
  EXPECT_EQ(here_, 0);
  commit(10);
  EXPECT_EQ(here_, 10);
  EXPECT_EQ(syncs_, static_cast<int>(committed_));
}

TEST_F(QuickMedium, IsSyncedByTheThreadAgainWhenItWasSlowOnce) {
  commit(CommitThread::kQuickInARow + 1);
  slow_ = true;
  commit(20);
  EXPECT_EQ(here_, 2);
  slow_ = false;
  commit(CommitThread::kQuickInARow - 1);
  EXPECT_EQ(here_, 2);
  commit(2);
  EXPECT_GE(here_, 3);
}

TEST_F(QuickMedium, IsNotSyncedByTheLoopBehindASyncThatFailedInTheThread) {
  commit(CommitThread::kQuickInARow);
  const Sequence safe = committed_;
  allowed_ = false;
  broken_ = true;
  thread_->committed(++committed_, CommitKind::kNamespace);
  while (syncs_ <= static_cast<int>(safe)) sleep_for(Milliseconds(1));
  sleep_for(Milliseconds(50));
  // The loop has not heard of it yet, and what the medium could not write it tells nobody again.
  broken_ = false;
  allowed_ = true;
  thread_->committed(++committed_, CommitKind::kNamespace);
  EXPECT_EQ(progress_.back(), safe);
  ASSERT_TRUE(run_until([&] { return failed_; }));
  EXPECT_EQ(progress_.back(), safe);
}

TEST_F(QuickMedium, IsNotSyncedByTheThreadWhileTheLoopDoes) {
  commit(CommitThread::kQuickInARow);
  int during = 0;
  meanwhile_ = [&] {
    const int begun = syncs_;
    thread_->sync_anyway();
    sleep_for(Milliseconds(50));
    during += syncs_ - begun;
  };
  thread_->committed(++committed_, CommitKind::kNamespace);
  EXPECT_EQ(here_, 1);
  EXPECT_EQ(during, 0);
  EXPECT_TRUE(run_until([&] { return syncs_ == static_cast<int>(committed_) + 1; })) << "but behind it";
}

TEST_F(QuickMedium, IsSyncedByTheThreadWhileTheLogWaits) {
  commit(CommitThread::kQuickInARow);
  allowed_ = false;
  commit(5);
  EXPECT_EQ(here_, 0);
  allowed_ = true;
  commit(5);
  EXPECT_EQ(here_, 5);
}

TEST_F(QuickMedium, AFailedSyncInTheLoopIsTheLastOne) {
  commit(CommitThread::kQuickInARow);
  broken_ = true;
  commit(1);
  EXPECT_TRUE(failed_);
  const int before = syncs_;
  thread_->committed(committed_ + 1, CommitKind::kNamespace);
  for (int i = 0; i < 5; ++i) loop_.run_once(Milliseconds(3));
  EXPECT_EQ(syncs_, before);
  EXPECT_LT(progress_.back(), committed_);
}

TEST_F(GroupCommit, AFailedSyncIsTheLastOne) {
  gate_.release(100);
  broken_ = true;
  auto thread = start(Milliseconds(60000));
  thread->committed(1, CommitKind::kNamespace);
  ASSERT_TRUE(run_until([&] { return failed_; }));
  thread->committed(2, CommitKind::kNamespace);
  for (int i = 0; i < 5; ++i) loop_.run_once(Milliseconds(3));
  EXPECT_EQ(syncs_, 1);
  EXPECT_TRUE(progress_.empty());
}

}  // namespace
}  // namespace pnfsrdma::mds
