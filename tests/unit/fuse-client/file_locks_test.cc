// SPDX-License-Identifier: Apache-2.0
#include "fuse-client/file_locks.h"

#include <gtest/gtest.h>

#include <thread>

#include "shared/initiator/cancellation.h"

namespace pnfsrdma::fuse_client {
namespace {

constexpr LockOwner kProcess{LockOwner::Kind::kPosix, 7};
constexpr LockOwner kOpenFile{LockOwner::Kind::kFlock, 7};

FileLocks::Held holding(uint64_t first, uint64_t last) {
  FileLocks::Held held;
  held.stateid = nfs4::Stateid{1, {std::byte{2}}};
  held.ranges.lock({first, last, true});
  held.process = 42;
  return held;
}

TEST(FileLocks, NameSaysWhichKindOfOwnerItIs) {
  EXPECT_EQ(as_text(kProcess.name()), "posix-0000000000000007");
  EXPECT_EQ(as_text(kOpenFile.name()), "flock-0000000000000007");
}

TEST(FileLocks, KeepsWhatAnOwnerHolds) {
  FileLocks locks;
  EXPECT_FALSE(locks.has(kProcess));
  EXPECT_FALSE(locks.held(kProcess).stateid);
  locks.keep(kProcess, holding(0, 9));
  EXPECT_TRUE(locks.has(kProcess));
  EXPECT_FALSE(locks.has(kOpenFile));
  EXPECT_EQ(locks.owners(), std::vector{kProcess});
  EXPECT_EQ(locks.held(kProcess).ranges.all().size(), 1u);
  EXPECT_EQ(locks.process_of(kProcess.name()), 42);
  EXPECT_EQ(locks.process_of(kOpenFile.name()), 0);
  locks.forget(kProcess);
  EXPECT_FALSE(locks.has(kProcess));
}

TEST(FileLocks, ReleasedOpenFileLeavesTheLocksThatWereLastAskedForByIt) {
  FileLocks locks;
  FileLocks::Held held = holding(0, 9);
  held.open_file = 3;
  locks.keep(kProcess, held);
  locks.keep(kOpenFile, held);
  EXPECT_EQ(locks.owners_by(3), (std::vector{kProcess, kOpenFile}));
  held.open_file = 4;
  locks.keep(kProcess, held);
  EXPECT_EQ(locks.owners_by(3), std::vector{kOpenFile});
  locks.forget(kOpenFile);
  EXPECT_TRUE(locks.owners_by(3).empty());
  EXPECT_TRUE(locks.owners_by(0).empty());
}

TEST(FileLocks, LostOnesAreSeenUntilTheirOwnerIsForgotten) {
  FileLocks locks;
  locks.keep(kOpenFile, holding(0, 9));
  FileLocks::Held lost = holding(0, 9);
  lost.lost = true;
  locks.keep(kProcess, lost);
  EXPECT_TRUE(locks.any_lost());
  locks.forget(kOpenFile);
  EXPECT_TRUE(locks.any_lost());
  locks.forget(kProcess);
  EXPECT_FALSE(locks.any_lost());
  locks.keep(kProcess, lost);
  locks.clear();
  EXPECT_FALSE(locks.any_lost());
}

TEST(FileLocks, OperationsOfOneOwnerWaitForEachOther) {
  FileLocks locks;
  ASSERT_TRUE(locks.begin(kProcess));
  ASSERT_TRUE(locks.begin(kOpenFile));
  std::atomic<bool> second = false;
  std::thread waiting([&] {
    ASSERT_TRUE(locks.begin(kProcess));
    second = true;
    locks.end(kProcess);
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(second);
  locks.end(kProcess);
  waiting.join();
  EXPECT_TRUE(second);
  locks.end(kOpenFile);
  EXPECT_FALSE(locks.has(kProcess));
}

TEST(FileLocks, KilledProcessDoesNotWait) {
  class Killed final : public initiator::Cancellation {
   public:
    bool requested() override { return true; }
  } killed;
  FileLocks locks;
  ASSERT_TRUE(locks.begin(kProcess));
  std::thread([&] {
    const initiator::CancellationScope scope(killed);
    EXPECT_FALSE(locks.begin(kProcess));
  }).join();
  locks.end(kProcess);
}

TEST(FileLocks, OperationThatIsUnderWaySurvivesAClear) {
  FileLocks locks;
  ASSERT_TRUE(locks.begin(kProcess));
  locks.keep(kProcess, holding(0, 9));
  locks.clear();
  EXPECT_FALSE(locks.held(kProcess).stateid);
  locks.end(kProcess);
  EXPECT_FALSE(locks.has(kProcess));
}

// --- decided here ---

constexpr nfs4::LockRange kFirst{0, 9, true};
constexpr nfs4::LockRange kShared{0, 9, false};
using Verdict = FileLocks::Verdict;

FileLocks::Held asker(uint64_t open_file = 3) {
  FileLocks::Held made;
  made.process = 42;
  made.open_file = open_file;
  return made;
}

TEST(FileLocks, OneIsGivenHereUnlessAnotherOwnersIsInTheWay) {
  FileLocks locks;
  EXPECT_EQ(locks.lock_here(kProcess, kFirst, asker()), Verdict::kGiven);
  EXPECT_TRUE(locks.are_here());
  EXPECT_EQ(locks.lock_here(kProcess, {5, 20, true}, asker()), Verdict::kGiven)
      << "one's own is not in the way";
  EXPECT_EQ(locks.lock_here(kOpenFile, kFirst, asker()), Verdict::kInTheWay);
  EXPECT_EQ(locks.lock_here(kOpenFile, kShared, asker()), Verdict::kInTheWay);
  EXPECT_EQ(locks.lock_here(kOpenFile, {21, 30, true}, asker(4)), Verdict::kGiven);
  EXPECT_EQ(locks.process_of(kProcess.name()), 42);
  EXPECT_EQ(locks.owners_by(3), std::vector{kProcess});
  EXPECT_TRUE(locks.owners().empty()) << "the server knows of none";
  EXPECT_EQ(*locks.unlock_here(kProcess, {0, UINT64_MAX, true}), Verdict::kGiven);
  EXPECT_EQ(*locks.unlock_here(kOpenFile, {0, UINT64_MAX, true}), Verdict::kGiven);
  EXPECT_FALSE(locks.are_here());
  EXPECT_EQ(*locks.unlock_here(kProcess, kFirst), Verdict::kAskServer) << "nothing is";
}

TEST(FileLocks, ReadersShareAndChangeTheirModeWhereNobodyElseReads) {
  FileLocks locks;
  EXPECT_EQ(locks.lock_here(kProcess, kShared, asker()), Verdict::kGiven);
  EXPECT_EQ(locks.lock_here(kOpenFile, kShared, asker()), Verdict::kGiven);
  EXPECT_EQ(locks.lock_here(kProcess, kFirst, asker()), Verdict::kInTheWay);
  EXPECT_EQ(locks.held(kProcess).ranges.all(), std::vector{kShared}) << "what was held stays";
  EXPECT_EQ(*locks.unlock_here(kOpenFile, kShared), Verdict::kGiven);
  EXPECT_EQ(locks.lock_here(kProcess, kFirst, asker()), Verdict::kGiven);
}

TEST(FileLocks, WhoseLocksAreAtTheServerAsksThereAndSoDoOthers) {
  FileLocks locks;
  locks.keep(kProcess, holding(0, 9));
  EXPECT_EQ(locks.lock_here(kOpenFile, {20, 29, true}, asker()), Verdict::kAskServer);
  EXPECT_EQ(*locks.unlock_here(kProcess, kFirst), Verdict::kAskServer);
  locks.forget(kProcess);
  EXPECT_EQ(locks.lock_here(kOpenFile, {20, 29, true}, asker()), Verdict::kAskServer)
      << "that one is on its way";
  locks.asked_server();
  locks.asked_server();
  EXPECT_EQ(locks.lock_here(kOpenFile, {20, 29, true}, asker()), Verdict::kGiven);
}

TEST(FileLocks, AStateidWithoutLocksIsNoReasonToAskTheServer) {
  FileLocks locks;
  FileLocks::Held held = holding(0, 9);
  held.ranges.unlock({0, 9, true});
  locks.keep(kProcess, held);
  EXPECT_EQ(locks.lock_here(kProcess, kFirst, asker()), Verdict::kGiven);
  EXPECT_TRUE(locks.held(kProcess).stateid);
}

TEST(FileLocks, WhatIsInTheWayIsSaidWithoutTheServerWhereOnlyWeLock) {
  FileLocks locks;
  std::optional<FileLocks::InTheWay> found;
  EXPECT_EQ(locks.test_here(kOpenFile, kFirst, false, found), Verdict::kAskServer);
  EXPECT_EQ(locks.test_here(kOpenFile, kFirst, true, found), Verdict::kGiven);
  locks.lock_here(kProcess, kFirst, asker());
  EXPECT_EQ(locks.test_here(kOpenFile, {9, 30, false}, true, found), Verdict::kInTheWay);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->owner, kProcess);
  EXPECT_EQ(found->range, kFirst);
  EXPECT_EQ(locks.test_here(kProcess, kFirst, true, found), Verdict::kGiven);
  EXPECT_EQ(locks.test_here(kOpenFile, kFirst, false, found), Verdict::kWait)
      << "the server does not know them";
}

TEST(FileLocks, WhileTheyAreHandedOverNobodyLocksOrUnlocks) {
  FileLocks locks;
  EXPECT_FALSE(locks.begin_hand_over());
  locks.lock_here(kProcess, kFirst, asker());
  auto work = locks.begin_hand_over();
  ASSERT_TRUE(work);
  ASSERT_EQ(work->owners.size(), 1u);
  EXPECT_EQ(locks.lock_here(kOpenFile, {20, 29, true}, asker()), Verdict::kWait);
  EXPECT_EQ(locks.lock_at_server(), Verdict::kWait);
  std::atomic<bool> unlocked = false;
  std::thread unlocking([&] {
    EXPECT_EQ(*locks.unlock_here(kProcess, kFirst), Verdict::kAskServer) << "by then it is the server's";
    unlocked = true;
  });
  class Killed final : public initiator::Cancellation {
   public:
    bool requested() override { return true; }
  } killed;
  {
    const initiator::CancellationScope scope(killed);
    EXPECT_EQ(locks.unlock_here(kProcess, kFirst).error().number(), EINTR);
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(unlocked);
  work->owners[0].second.stateid = nfs4::Stateid{1, {std::byte{5}}};
  EXPECT_TRUE(locks.end_hand_over(*std::move(work)));
  unlocking.join();
  EXPECT_FALSE(locks.are_here());
  EXPECT_EQ(locks.owners(), std::vector{kProcess});
  EXPECT_EQ(locks.lock_at_server(), Verdict::kAskServer);
  locks.asked_server();
}

TEST(FileLocks, AServerThatLosesItsStateWhileTheyAreHandedOverGetsThemAgain) {
  FileLocks locks;
  locks.lock_here(kProcess, kFirst, asker());
  auto work = locks.begin_hand_over();
  ASSERT_TRUE(work);
  EXPECT_TRUE(locks.outlive_server());
  EXPECT_FALSE(locks.end_hand_over(*std::move(work)));
  work = locks.begin_hand_over();
  ASSERT_TRUE(work);
  EXPECT_TRUE(locks.end_hand_over(*std::move(work)));
  EXPECT_FALSE(locks.outlive_server()) << "they are its own";
}

TEST(FileLocks, WithoutADelegationWhatIsHereIsLost) {
  FileLocks locks;
  EXPECT_EQ(locks.lose_here(), 0u);
  locks.lock_here(kProcess, kFirst, asker());
  auto work = locks.begin_hand_over();
  EXPECT_EQ(locks.lose_here(), 1u);
  EXPECT_TRUE(locks.any_lost());
  work->owners[0].second.lost = true;
  EXPECT_EQ(locks.end_hand_over(*std::move(work)), 0u) << "it was told";
  EXPECT_TRUE(locks.any_lost()) << "whatever became of it";
  EXPECT_FALSE(locks.begin_hand_over());
  EXPECT_EQ(locks.lock_here(kOpenFile, {20, 29, true}, asker()), Verdict::kAskServer);
  locks.asked_server();
  locks.forget(kProcess);
  EXPECT_FALSE(locks.any_lost());
}

}  // namespace
}  // namespace pnfsrdma::fuse_client
