// SPDX-License-Identifier: Apache-2.0
#include "fuse-client/lock_calls.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <deque>
#include <thread>

#include "fuse-client/lock_hand_over.h"
#include "shared/nfs4/open_operations.h"
#include "tests/unit/initiator/session/scripted_mds.h"

namespace pnfsrdma::fuse_client {
namespace {

using initiator::ScriptedMds;
using nfs4::Status;

constexpr LockOwner kLocker{LockOwner::Kind::kPosix, 7};
constexpr nfs4::LockRange kFirst{0, 9, true};
constexpr nfs4::LockRange kSecond{20, 29, true};

nfs4::Stateid state_of(uint8_t number, uint32_t seqid = 1) {
  nfs4::Stateid made{.seqid = seqid};
  made.other.fill(std::byte{number});
  return made;
}
const nfs4::Stateid kOpen = state_of(1, 5);

// A server that grants every lock, under one stateid for each new owner, but for the refusals it is told to
// make; remembers what it was asked.
class LockCallsTest : public testing::Test {
 protected:
  LockCallsTest() {
    mds_.on_operation = [this](const ScriptedMds::Operation& operation) { return answer(operation); };
    session_ = std::move(*initiator::Session::start({.host = "127.0.0.1",
                                                     .port = mds_.port,
                                                     .owner = "locks",
                                                     .persistence = initiator::Persistence::kSoftError,
                                                     .timeout = Milliseconds(300),
                                                     .retransmissions = 0},
                                                    nullptr, &recovery_));
    open(nfs4::kShareAccessBoth);
    closes_ = std::make_unique<CloseQueue>(*session_);
    delegations_ = std::make_unique<Delegations>(*closes_);
  }
  LockCalls calls() const { return {*session_, *delegations_, clock_}; }
  void open(uint32_t access) {
    file_->begin_open();
    file_->opened(kOpen, access, {});
  }
  LockWish wish(const nfs4::LockRange& range) const {
    return {.inode = file_, .owner = kLocker, .range = range, .process = 42};
  }
  int lock(const nfs4::LockRange& range) {
    const auto locked = calls().lock(wish(range));
    return locked ? 0 : locked.error().number();
  }
  int unlock(const nfs4::LockRange& range, bool last = false) {
    const auto unlocked = calls().unlock(*file_, kLocker, range, last);
    return unlocked ? 0 : unlocked.error().number();
  }
  // The server has lost all it knew of us.
  void lose_client() {
    const int before = recovery_.reclaims;
    mds_.lose_client();
    EXPECT_TRUE(calls().test(wish(kSecond)));
    EXPECT_EQ(recovery_.reclaims, before + 1);
  }
  FileLocks::Held held() const { return file_->locks().held(kLocker); }
  void refuse(std::deque<Status> with) {
    const std::lock_guard guard(mds_.mutex);
    refusals_ = std::move(with);
  }
  void revoke() {
    const std::lock_guard guard(mds_.mutex);
    revoked_ = true;
  }
  std::vector<nfs4::LockArguments> locks() {
    const std::lock_guard guard(mds_.mutex);
    return locks_;
  }
  nfs4::LockArguments last_lock() { return locks().back(); }
  uint32_t compounds() {
    const std::lock_guard guard(mds_.mutex);
    return mds_.executed;
  }
  void silence() {
    const std::lock_guard guard(mds_.mutex);
    mds_.faults = {ScriptedMds::Fault::kDropAfter, ScriptedMds::Fault::kSilence};
  }

 private:
  // Called with mds_.mutex held.
  ScriptedMds::Answer answer(const ScriptedMds::Operation& operation) {
    if (const auto* lock = std::get_if<nfs4::LockArguments>(&operation)) {
      locks_.push_back(*lock);
      if (const Status refusal = next_refusal(); refusal != Status::kOk) return nfs4::LockResponse(refusal);
      if (lock->locker.is<nfs4::Locker::kNewOwner>()) ++owners_;
      return nfs4::LockResponse(nfs4::LockResult{state_of(100 + owners_, ++seqid_)});
    }
    if (const auto* unlock = std::get_if<nfs4::UnlockArguments>(&operation)) {
      unlocks_.push_back(*unlock);
      if (const Status refusal = next_refusal(); refusal != Status::kOk) return nfs4::UnlockResponse(refusal);
      return nfs4::UnlockResponse(nfs4::UnlockResult{state_of(100 + owners_, ++seqid_)});
    }
    if (const auto* test = std::get_if<nfs4::LockTestArguments>(&operation)) {
      if (test->offset != kFirst.first) return nfs4::LockTestResponse(nfs4::LockTestResult{});
      return nfs4::LockTestResponse::failed({.offset = 4, .length = 2, .type = nfs4::LockType::kWrite});
    }
    if (const auto* free = std::get_if<nfs4::FreeStateidArguments>(&operation))
      freed_.push_back(free->stateid);
    if (const auto* test = std::get_if<nfs4::TestStateidArguments>(&operation)) {
      nfs4::TestStateidResult tested;
      tested.statuses.assign(test->stateids.size(), revoked_ ? Status::kDelegRevoked : Status::kOk);
      return nfs4::TestStateidResponse(std::move(tested));
    }
    if (std::holds_alternative<nfs4::GetAttributesArguments>(operation)) {
      nfs4::GetAttributesResult result;
      result.attributes.lease_time = 6;  // a delegation is handed over within half of it
      return nfs4::GetAttributesResponse(std::move(result));
    }
    return nfs4::status_result(nfs4::operation_of(operation), Status::kOk);
  }
  Status next_refusal() {
    if (refusals_.empty()) return Status::kOk;
    const Status next = refusals_.front();
    refusals_.pop_front();
    return next;
  }

  // Guarded by mds_.mutex.
  std::vector<nfs4::LockArguments> locks_;
  std::deque<Status> refusals_;
  bool revoked_ = false;  // each delegation
  uint8_t owners_ = 0;
  uint32_t seqid_ = 0;

 protected:
  std::vector<nfs4::UnlockArguments> unlocks_;
  std::vector<nfs4::Stateid> freed_;
  ScriptedMds mds_;
  // On the session's recovery thread: the file is open again, and locks may be reclaimed.
  struct Recovery final : initiator::RecoveryHandler {
    explicit Recovery(LockCallsTest& of) : test(of) {}
    void layouts_lost() override {}
    void reclaim() override {
      test.file_->reclaimed(state_of(8, 3));
      EXPECT_TRUE(test.calls().reclaim(*test.file_, state_of(8, 3), true));
      ++reclaims;
    }
    LockCallsTest& test;
    std::atomic<int> reclaims = 0;
  } recovery_{*this};
  const SystemClock clock_;
  std::unique_ptr<initiator::Session> session_;
  const std::shared_ptr<Inode> file_ = std::make_shared<Inode>(nfs4::FileHandle(as_bytes("f")), 1);
  std::unique_ptr<CloseQueue> closes_;
  std::unique_ptr<Delegations> delegations_;
};

TEST_F(LockCallsTest, TheFirstLockGrowsFromTheOpenTheNextFromTheLock) {
  EXPECT_EQ(lock(kFirst), 0);
  const auto first = *last_lock().locker.get_if<nfs4::Locker::kNewOwner>();
  EXPECT_EQ(first.open_stateid.other, kOpen.other);
  EXPECT_EQ(first.open_stateid.seqid, 0u);
  EXPECT_EQ(first.lock_owner.owner, kLocker.name());
  EXPECT_EQ(lock(kSecond), 0);
  const auto second = *last_lock().locker.get_if<nfs4::Locker::kExistingOwner>();
  EXPECT_EQ(second.lock_stateid.other, state_of(101).other);
  EXPECT_EQ(second.lock_stateid.seqid, 0u);
  EXPECT_EQ(held().ranges.all(), (std::vector{kFirst, kSecond}));
  EXPECT_EQ(held().process, 42);
}

TEST_F(LockCallsTest, WhatIsRefusedIsNotHeld) {
  for (const auto& [status, number] : std::vector<std::pair<Status, int>>{
           {Status::kDenied, EAGAIN}, {Status::kNotSupp, ENOLCK}, {Status::kNoSpc, ENOSPC}}) {
    refuse({status});
    EXPECT_EQ(lock(kFirst), number);
    EXPECT_FALSE(file_->locks().has(kLocker));
  }
}

TEST_F(LockCallsTest, AFileThatIsNotOpenThatWayIsNotAskedFor) {
  file_->release();
  file_->settled();
  ASSERT_TRUE(file_->begin_close());
  file_->closed();
  open(nfs4::kShareAccessRead);
  EXPECT_EQ(lock(kFirst), EBADF);
  EXPECT_TRUE(locks().empty());
  EXPECT_EQ(lock({0, 9, false}), 0);
}

TEST_F(LockCallsTest, AStateidTheServerDoesNotKnowIsGivenUpWhereNothingIsLost) {
  EXPECT_EQ(lock(kFirst), 0);
  EXPECT_EQ(unlock(kFirst), 0);
  refuse({Status::kBadStateid});
  EXPECT_EQ(lock(kSecond), 0);
  EXPECT_TRUE(last_lock().locker.is<nfs4::Locker::kNewOwner>());
  EXPECT_FALSE(file_->locks().any_lost());
}

TEST_F(LockCallsTest, AnOpenThatTheServerDoesNotKnowIsMadeGoodForTheFirstLock) {
  const int before = recovery_.reclaims;
  refuse({Status::kBadStateid});
  EXPECT_EQ(lock(kFirst), 0);
  EXPECT_EQ(recovery_.reclaims, before + 1);
  const auto first = *last_lock().locker.get_if<nfs4::Locker::kNewOwner>();
  EXPECT_EQ(first.open_stateid.other, state_of(8).other);
  EXPECT_FALSE(file_->locks().any_lost());
}

TEST_F(LockCallsTest, ALockThatWasLostIsSaidUntilTheOwnerUnlocks) {
  EXPECT_EQ(lock(kFirst), 0);
  refuse({Status::kExpired});
  EXPECT_EQ(lock(kSecond), EIO);
  EXPECT_TRUE(file_->locks().any_lost());
  EXPECT_EQ(lock(kSecond), EIO);
  const size_t asked = locks().size();
  EXPECT_EQ(unlock(kFirst), 0);  // the server has nothing to unlock
  EXPECT_TRUE(unlocks_.empty());
  EXPECT_EQ(locks().size(), asked);
  EXPECT_FALSE(file_->locks().any_lost());
  EXPECT_EQ(lock(kSecond), 0);
}

TEST_F(LockCallsTest, AServerThatLosesItsStateAgainAndAgainIsNotWaitedFor) {
  refuse(std::deque<Status>(50, Status::kStaleStateid));
  EXPECT_EQ(lock(kFirst), EIO);
  EXPECT_LT(locks().size(), 10u);
}

TEST_F(LockCallsTest, TheLastUnlockGivesTheStateidUp) {
  EXPECT_EQ(lock(kFirst), 0);
  EXPECT_EQ(unlock({0, 4, true}), 0);
  EXPECT_EQ(held().ranges.all(), (std::vector{nfs4::LockRange{5, 9, true}}));
  EXPECT_EQ(unlock({0, UINT64_MAX, true}, true), 0);
  EXPECT_FALSE(file_->locks().has(kLocker));
  ASSERT_EQ(freed_.size(), 1u);
  EXPECT_EQ(freed_[0].other, state_of(101).other);
  // Who holds nothing has nothing to say.
  EXPECT_EQ(unlock(kFirst), 0);
  EXPECT_EQ(unlocks_.size(), 2u);
}

// The server has given the lock, and its answer was lost: what is not asked after would be locked for ever.
TEST_F(LockCallsTest, ALockNobodyKnowsTheOutcomeOfIsUnlocked) {
  silence();
  EXPECT_NE(lock(kFirst), 0);
  ASSERT_TRUE(held().doubtful);
  EXPECT_EQ(*held().doubtful, kFirst);
  const size_t asked = locks().size();
  EXPECT_EQ(unlock(kFirst), 0);
  EXPECT_EQ(locks().size(), asked + 1);
  EXPECT_EQ(last_lock().offset, kFirst.first);
  ASSERT_EQ(unlocks_.size(), 1u);
  EXPECT_FALSE(held().doubtful);
  EXPECT_TRUE(held().ranges.empty());
}

TEST_F(LockCallsTest, TestSaysWhoseLockIsInTheWay) {
  const auto in_the_way = calls().test(wish(kFirst));
  ASSERT_TRUE(in_the_way && *in_the_way);
  EXPECT_EQ((*in_the_way)->offset, 4u);
  const auto free = calls().test(wish(kSecond));
  ASSERT_TRUE(free);
  EXPECT_FALSE(*free);
}

TEST_F(LockCallsTest, AReclaimAsksForEachRangeFromTheNewOpen) {
  EXPECT_EQ(lock(kFirst), 0);
  EXPECT_EQ(lock(kSecond), 0);
  lose_client();
  const auto asked = locks();
  ASSERT_EQ(asked.size(), 4u);
  EXPECT_TRUE(asked[2].reclaim);
  EXPECT_EQ(asked[2].locker.get_if<nfs4::Locker::kNewOwner>()->open_stateid.other, state_of(8).other);
  EXPECT_TRUE(asked[3].reclaim);
  EXPECT_EQ(asked[3].locker.get_if<nfs4::Locker::kExistingOwner>()->lock_stateid.other, state_of(102).other);
  EXPECT_FALSE(file_->locks().any_lost());
  EXPECT_EQ(held().stateid->other, state_of(102).other);
}

TEST_F(LockCallsTest, WhatIsNotReclaimedIsLost) {
  EXPECT_EQ(lock(kFirst), 0);
  refuse({Status::kNoGrace});
  lose_client();
  EXPECT_TRUE(file_->locks().any_lost());
  EXPECT_EQ(lock(kSecond), EIO);
  EXPECT_EQ(unlock(kFirst), 0);
  EXPECT_EQ(lock(kFirst), 0);
}

TEST_F(LockCallsTest, OfAFileThatCannotBeOpenedAgainAllIsLost) {
  EXPECT_EQ(lock(kFirst), 0);
  calls().lose(*file_);
  EXPECT_EQ(locks().size(), 1u);
  EXPECT_TRUE(file_->locks().any_lost());
}

// Under a write delegation.
class DelegatedLocksTest : public LockCallsTest {
 protected:
  DelegatedLocksTest() { file_->delegated({.stateid = state_of(50), .allows = nfs4::kShareAccessBoth}); }
  LockWish others_wish(const nfs4::LockRange& range) const {
    LockWish other = wish(range);
    other.owner = {LockOwner::Kind::kFlock, 8};
    return other;
  }
};

TEST_F(DelegatedLocksTest, TheServerIsNotAsked) {
  const auto given = calls().lock(wish(kFirst));
  ASSERT_TRUE(given);
  EXPECT_TRUE(given->here);
  const auto other = calls().lock(others_wish(kFirst));
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().number(), EAGAIN);
  const auto in_the_way = calls().test(others_wish({5, 30, true}));
  ASSERT_TRUE(in_the_way && *in_the_way);
  EXPECT_EQ((*in_the_way)->offset, kFirst.first);
  EXPECT_EQ((*in_the_way)->length, 10u);
  EXPECT_EQ((*in_the_way)->owner.owner, kLocker.name());
  EXPECT_EQ((*in_the_way)->owner.client_id, session_->clientid());
  EXPECT_EQ(unlock(kFirst), 0);
  EXPECT_TRUE(calls().lock(others_wish(kFirst)));
  EXPECT_TRUE(locks().empty());
  EXPECT_TRUE(unlocks_.empty());
}

TEST_F(DelegatedLocksTest, AStateidOfBeforeIsGivenUpInTheEnd) {
  ASSERT_TRUE(file_->end_delegation());
  file_->delegation_returned(state_of(50));
  EXPECT_EQ(lock(kFirst), 0);
  EXPECT_EQ(unlock(kFirst), 0);
  file_->delegated({.stateid = state_of(51), .allows = nfs4::kShareAccessBoth});
  EXPECT_EQ(lock(kFirst), 0);
  EXPECT_EQ(locks().size(), 1u);
  EXPECT_EQ(unlock({0, UINT64_MAX, true}, true), 0);
  EXPECT_EQ(freed_.size(), 1u);
  EXPECT_FALSE(file_->locks().has(kLocker));
}

TEST_F(DelegatedLocksTest, WhatIsLockedHereStaysWhenTheServerLosesItsState) {
  EXPECT_EQ(lock(kFirst), 0);
  EXPECT_TRUE(calls().reclaim(*file_, state_of(8, 3), true));
  EXPECT_TRUE(locks().empty());
  EXPECT_EQ(held().ranges.all(), std::vector{kFirst});
  calls().lose(*file_);
  EXPECT_TRUE(file_->locks().any_lost());
  EXPECT_EQ(lock(kSecond), EIO);
}

// Others may wait for the file when they are handed over. What is too much to be decided here is the server's.
TEST_F(DelegatedLocksTest, SoManyAreHereAsAreSoonHandedOver) {
  delegations_->take(file_, {.stateid = state_of(50), .allows = nfs4::kShareAccessBoth}, 0);
  constexpr uint64_t kOwners = 64;
  const auto lock_one = [&](uint64_t i) {
    LockWish one = wish({4 * i, 4 * i + 2, false});
    one.owner = {LockOwner::Kind::kPosix, i % kOwners};
    return calls().lock(one);
  };
  for (uint64_t i = 0; i < FileLocks::kRangesHereMax; ++i) ASSERT_TRUE(lock_one(i)->here) << i;
  EXPECT_TRUE(locks().empty());
  const uint32_t before = compounds();
  const auto more = lock_one(FileLocks::kRangesHereMax);
  ASSERT_TRUE(more);
  EXPECT_FALSE(more->here);
  EXPECT_EQ(locks().size(), FileLocks::kRangesHereMax + 1);
  EXPECT_LE(compounds() - before, FileLocks::kRangesHereMax / 8) << "many go together";
  EXPECT_FALSE(file_->locks().are_here());
  EXPECT_FALSE(file_->locks().any_lost());
  EXPECT_EQ(file_->locks().owners().size(), kOwners);
}

TEST_F(DelegatedLocksTest, SoManyHolesAreTheServersToo) {
  delegations_->take(file_, {.stateid = state_of(50), .allows = nfs4::kShareAccessBoth}, 0);
  EXPECT_EQ(lock({0, 1'000'000, true}), 0);
  for (uint64_t i = 1; i < FileLocks::kRangesHereMax; ++i) ASSERT_EQ(unlock({4 * i, 4 * i, true}), 0);
  EXPECT_TRUE(file_->locks().are_here());
  EXPECT_EQ(unlock({0, 0, true}), 0) << "no more of them";
  EXPECT_TRUE(unlocks_.empty());
  EXPECT_EQ(unlock({999'000, 999'000, true}), 0);
  EXPECT_EQ(locks().size(), FileLocks::kRangesHereMax);
  EXPECT_EQ(unlocks_.size(), 1U);
  EXPECT_FALSE(file_->locks().any_lost());
}

// Of one user together: whoever has no stateid yet asks for one lock first.
TEST_F(DelegatedLocksTest, ManyAreHandedOverTogetherUnlessTheServerRefusesOne) {
  const auto lock_as = [&](uint64_t number, uint32_t user, const nfs4::LockRange& range) {
    LockWish one = wish(range);
    one.owner = {LockOwner::Kind::kPosix, number};
    one.credential = {user, user, {}};
    return calls().lock(one).has_value();
  };
  for (uint64_t owner = 1; owner <= 4; ++owner) {
    ASSERT_TRUE(lock_as(owner, owner % 2, {100 * owner, 100 * owner + 9, true}));
    ASSERT_TRUE(lock_as(owner, owner % 2, {100 * owner + 20, 100 * owner + 29, true}));
  }
  ASSERT_TRUE(file_->end_delegation());
  // The first user that is asked for has two owners.
  refuse({Status::kOk, Status::kDenied});
  const uint32_t before = compounds();
  LockHandOver(*session_).run(*file_);
  size_t lost = 0;
  for (uint64_t owner = 1; owner <= 4; ++owner) {
    const FileLocks::Held held = file_->locks().held({LockOwner::Kind::kPosix, owner});
    EXPECT_EQ(held.lost, !held.stateid.has_value()) << owner;
    lost += held.lost ? 1 : 0;
  }
  EXPECT_EQ(lost, 1U) << "what was given before it is confirmed later";
  EXPECT_LE(compounds() - before, 6U);
}

// A server that says DELAY now and then works on them: it is not the same as one that says nothing else.
TEST_F(DelegatedLocksTest, AServerThatHasNoTimeNowAndThenIsNotGivenUp) {
  constexpr int kMany = 60;
  for (uint64_t i = 0; i < kMany; ++i) ASSERT_EQ(lock({4 * i, 4 * i + 1, true}), 0);
  ASSERT_TRUE(file_->end_delegation());
  std::deque<Status> answers;
  for (int i = 0; i < kMany; ++i) {
    answers.push_back(Status::kOk);
    answers.push_back(Status::kDelay);
  }
  refuse(answers);
  const SteadyTime begun = steady_now();
  LockHandOver(*session_).run(*file_);
  EXPECT_GT(steady_now() - begun, session_->lease() / 2);
  EXPECT_FALSE(file_->locks().any_lost());
  EXPECT_EQ(held().ranges.all().size(), static_cast<size_t>(kMany));
}

TEST_F(DelegatedLocksTest, AServerThatHasNoTimeIsAskedAgainButNotUntilItRevokesThem) {
  EXPECT_EQ(lock(kFirst), 0);
  ASSERT_TRUE(file_->end_delegation());
  refuse(std::deque<Status>(3, Status::kDelay));
  LockHandOver(*session_).run(*file_);
  EXPECT_EQ(locks().size(), 4u);
  EXPECT_FALSE(file_->locks().any_lost());
  EXPECT_EQ(unlock(kFirst, true), 0);
  file_->delegation_returned(state_of(50));
  file_->delegated({.stateid = state_of(51), .allows = nfs4::kShareAccessBoth});
  EXPECT_EQ(lock(kFirst), 0);
  EXPECT_EQ(lock(kSecond), 0);
  ASSERT_TRUE(file_->end_delegation());
  refuse(std::deque<Status>(100'000, Status::kDelay));
  const auto begun = std::chrono::steady_clock::now();
  LockHandOver(*session_).run(*file_);
  EXPECT_TRUE(file_->locks().any_lost());
  EXPECT_LT(std::chrono::steady_clock::now() - begun, session_->lease());
}

TEST_F(DelegatedLocksTest, BehindTheHandOverTheServerIsAsked) {
  EXPECT_EQ(lock(kFirst), 0);
  ASSERT_TRUE(file_->end_delegation());
  std::atomic<bool> locked = false;
  std::thread locking([&] {
    EXPECT_EQ(lock(kSecond), 0);
    locked = true;
  });
  std::this_thread::sleep_for(Milliseconds(20));
  EXPECT_FALSE(locked);
  LockHandOver(*session_).run(*file_);
  locking.join();
  EXPECT_EQ(locks().size(), 2u);
  EXPECT_EQ(held().ranges.all(), (std::vector{kFirst, kSecond}));
  EXPECT_EQ(unlock(kFirst), 0);
  EXPECT_EQ(unlocks_.size(), 1u);
}

TEST_F(DelegatedLocksTest, WhatTheServerDoesNotConfirmIsLost) {
  for (const bool revoked : {false, true}) {
    EXPECT_EQ(lock(kFirst), 0);
    EXPECT_EQ(lock(kSecond), 0);
    ASSERT_TRUE(file_->end_delegation());
    const size_t freed = freed_.size();
    if (revoked) {
      revoke();
    } else {
      refuse({Status::kOk, Status::kDenied});
    }
    LockHandOver(*session_).run(*file_);
    EXPECT_TRUE(file_->locks().any_lost());
    EXPECT_EQ(freed_.size(), freed + 1) << "what it had given is given back";
    EXPECT_EQ(unlock({0, UINT64_MAX, true}, true), 0);
    EXPECT_FALSE(file_->locks().any_lost());
    file_->delegation_returned(state_of(50));
    file_->delegated({.stateid = state_of(50), .allows = nfs4::kShareAccessBoth});
  }
}

}  // namespace
}  // namespace pnfsrdma::fuse_client
