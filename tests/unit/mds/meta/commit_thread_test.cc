// SPDX-License-Identifier: Apache-2.0
#include "server/mds/meta/commit_thread.h"

#include <gtest/gtest.h>

#include <atomic>
#include <semaphore>
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
