// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <time.h>

#include "tests/unit/mds/ops/test_server.h"

namespace pnfsrdma::mds {
namespace {

using nfs4::LockType;
using nfs4::Status;

constexpr uint64_t kToTheEnd = UINT64_MAX;

// A client with a file open, who locks it in the name of its owners.
class Locker {
 public:
  Locker(TestServer& server, const std::string& name, uint32_t access = kShareBoth) : client(server, name) {
    client.connect();
    open_file(access);
  }
  // After a restart of the server that keeps this client.
  Locker(TestServer& server, const Locker& before)
      : client(server), open(before.open), handle(before.handle) {
    client.id = before.client.id;
    CHECK(client.create_session(before.client.create_sequence + 1).ok());
  }

  void open_file(uint32_t access) {
    auto arguments = client.open_arguments("f", access);
    arguments.how = creating(create_how(nfs4::CreateMode::kUnchecked, mode_attribute(0644)));
    const auto opened = client.open(arguments);
    CHECK(opened.ok());
    open = opened.result.stateid;
    handle = client.last_handle;
  }
  nfs4::LockArguments arguments(LockType type, uint64_t offset, uint64_t length,
                                const std::string& owner) const {
    nfs4::OpenToLockOwner first;
    first.open_stateid = open;
    first.lock_owner.owner = nfs4::OwnerId(as_bytes(owner));
    nfs4::LockArguments lock{
        .type = type, .reclaim = false, .offset = offset, .length = length, .locker = {}};
    lock.locker = nfs4::LockOwner::make<nfs4::Locker::kNewOwner>(first);
    return lock;
  }
  nfs4::LockResponse send(const nfs4::LockArguments& lock) {
    const auto results = client.call({nfs4::PutFileHandleArguments{handle}, lock});
    return response_at<nfs4::LockResponse>(results, 1);
  }
  nfs4::LockResponse lock(LockType type, uint64_t offset, uint64_t length, const std::string& owner = "a") {
    return send(arguments(type, offset, length, owner));
  }
  nfs4::LockResponse relock(const nfs4::Stateid& stateid, LockType type, uint64_t offset, uint64_t length) {
    nfs4::LockArguments lock{
        .type = type, .reclaim = false, .offset = offset, .length = length, .locker = {}};
    lock.locker = nfs4::LockOwner::make<nfs4::Locker::kExistingOwner>(nfs4::ExistingLockOwner{stateid, 0});
    return send(lock);
  }
  nfs4::LockTestResponse test(LockType type, uint64_t offset, uint64_t length,
                              const std::string& owner = "a") {
    nfs4::LockTestArguments question{type, offset, length, {}};
    question.owner.owner = nfs4::OwnerId(as_bytes(owner));
    const auto results = client.call({nfs4::PutFileHandleArguments{handle}, question});
    return response_at<nfs4::LockTestResponse>(results, 1);
  }
  nfs4::UnlockResponse unlock(const nfs4::Stateid& stateid, uint64_t offset, uint64_t length) {
    const nfs4::UnlockArguments unlock{LockType::kWrite, 0, stateid, offset, length};
    const auto results = client.call({nfs4::PutFileHandleArguments{handle}, unlock});
    return response_at<nfs4::UnlockResponse>(results, 1);
  }
  Status close() {
    nfs4::CloseArguments arguments;
    arguments.open_stateid = open;
    arguments.open_stateid.seqid = 0;
    return client.status({nfs4::PutFileHandleArguments{handle}, arguments});
  }
  Status write(const nfs4::Stateid& stateid) {
    nfs4::WriteArguments arguments;
    arguments.stateid = stateid;
    arguments.data = nfs4::Data::view_of(as_bytes("x"));
    return client.status({nfs4::PutFileHandleArguments{handle}, arguments});
  }
  Status free(const nfs4::Stateid& stateid) { return client.status({nfs4::FreeStateidArguments{stateid}}); }

  TestClient client;
  nfs4::Stateid open;
  nfs4::FileHandle handle;
};

class LockTest : public ::testing::Test {
 protected:
  TestHost host_;
  std::unique_ptr<TestServer> server_ = std::make_unique<TestServer>(host_);
  Locker first_{*server_, "first"};
  Locker second_{*server_, "second"};
};

TEST_F(LockTest, OpenSaysThatThereAreLocks) {
  const auto opened = first_.client.open(first_.client.open_arguments("f", kShareRead));
  EXPECT_NE(opened.result.flags & nfs4::kOpenResultLockTypePosix, 0U);
  EXPECT_NE(opened.result.flags & nfs4::kOpenResultMayNotifyLock, 0U);
}

TEST_F(LockTest, WhatOneClientHoldsAnotherIsDenied) {
  const auto held = first_.lock(LockType::kWrite, 100, 50);
  ASSERT_TRUE(held.ok());
  EXPECT_EQ(held.result.lock_stateid.seqid, 1U);
  const auto denied = second_.lock(LockType::kRead, 149, kToTheEnd);
  ASSERT_EQ(denied.status, Status::kDenied);
  EXPECT_EQ(denied.failure.offset, 100U);
  EXPECT_EQ(denied.failure.length, 50U);
  EXPECT_EQ(denied.failure.type, LockType::kWrite);
  EXPECT_EQ(denied.failure.owner.client_id, first_.client.id);
  EXPECT_EQ(denied.failure.owner.owner, nfs4::OwnerId(as_bytes("a")));
  EXPECT_TRUE(second_.lock(LockType::kWrite, 150, kToTheEnd).ok());
  EXPECT_EQ(server_->locks.size(), 2U);
}

// Linux's client cannot take in a longer one: its process would see EIO.
TEST_F(LockTest, DenialNamesNoMoreThanTwentyBytesOfTheHolder) {
  const std::string owner = "abcdefghijklmnopqrstuvwxyz";
  ASSERT_TRUE(first_.lock(LockType::kWrite, 0, 10, owner).ok());
  const auto expected = nfs4::OwnerId(as_bytes(owner.substr(0, 20)));
  const auto denied = second_.lock(LockType::kWrite, 0, 10);
  ASSERT_EQ(denied.status, Status::kDenied);
  EXPECT_EQ(denied.failure.owner.owner, expected);
  const auto tested = second_.test(LockType::kWrite, 0, 10);
  ASSERT_EQ(tested.status, Status::kDenied);
  EXPECT_EQ(tested.failure.owner.owner, expected);
}

TEST_F(LockTest, OwnersOfOneClientExcludeEachOtherAndThemselvesNever) {
  ASSERT_TRUE(first_.lock(LockType::kWrite, 0, 10, "a").ok());
  EXPECT_EQ(first_.lock(LockType::kWrite, 0, 10, "b").status, Status::kDenied);
  EXPECT_TRUE(first_.lock(LockType::kWrite, 5, 10, "a").ok());
  EXPECT_EQ(first_.test(LockType::kRead, 0, 1, "a").status, Status::kOk);
  EXPECT_EQ(first_.test(LockType::kRead, 0, 1, "b").status, Status::kDenied);
}

TEST_F(LockTest, ReadersShareAndAnUpgradeWaitsForTheOther) {
  const auto mine = first_.lock(LockType::kRead, 0, 10);
  const auto other = second_.lock(LockType::kRead, 0, 10);
  ASSERT_TRUE(mine.ok() && other.ok());
  EXPECT_EQ(first_.relock(mine.result.lock_stateid, LockType::kWrite, 0, 10).status, Status::kDenied);
  ASSERT_TRUE(second_.unlock(other.result.lock_stateid, 0, 10).ok());
  const auto upgraded = first_.relock(mine.result.lock_stateid, LockType::kWrite, 0, 10);
  ASSERT_TRUE(upgraded.ok());
  EXPECT_EQ(second_.test(LockType::kRead, 0, 1).status, Status::kDenied);
  ASSERT_TRUE(first_.relock(upgraded.result.lock_stateid, LockType::kRead, 0, 10).ok());
  EXPECT_EQ(second_.test(LockType::kRead, 0, 1).status, Status::kOk);
}

TEST_F(LockTest, UnlockingTheMiddleLeavesBothSides) {
  const auto held = first_.lock(LockType::kWrite, 0, kToTheEnd);
  const auto unlocked = first_.unlock(held.result.lock_stateid, 10, 10);
  ASSERT_TRUE(unlocked.ok());
  EXPECT_EQ(unlocked.result.lock_stateid.other, held.result.lock_stateid.other);
  EXPECT_EQ(unlocked.result.lock_stateid.seqid, 2U);
  EXPECT_TRUE(second_.lock(LockType::kWrite, 10, 10).ok());
  const auto behind = second_.test(LockType::kWrite, 15, kToTheEnd);
  ASSERT_EQ(behind.status, Status::kDenied);
  EXPECT_EQ(behind.failure.offset, 20U);
  EXPECT_EQ(behind.failure.length, kToTheEnd);
}

TEST_F(LockTest, StateidRules) {
  const auto held = first_.lock(LockType::kWrite, 0, 10);
  nfs4::Stateid stateid = held.result.lock_stateid;
  ASSERT_TRUE(first_.unlock(stateid, 5, 5).ok());
  EXPECT_EQ(first_.unlock(stateid, 0, 5).status, Status::kOldStateid);
  stateid.seqid = 3;
  EXPECT_EQ(first_.relock(stateid, LockType::kWrite, 0, 5).status, Status::kBadStateid);
  stateid.seqid = 0;
  EXPECT_TRUE(first_.relock(stateid, LockType::kWrite, 0, 5).ok());
  EXPECT_EQ(second_.unlock(stateid, 0, 5).status, Status::kBadStateid);
  EXPECT_EQ(first_.unlock(first_.open, 0, 5).status, Status::kBadStateid);
  EXPECT_EQ(first_.unlock(nfs4::Stateid::anonymous(), 0, 5).status, Status::kBadStateid);
  auto from_lock = first_.arguments(LockType::kWrite, 0, 5, "new");
  from_lock.locker.get_if<nfs4::Locker::kNewOwner>()->open_stateid = stateid;
  EXPECT_EQ(first_.send(from_lock).status, Status::kBadStateid);
}

TEST_F(LockTest, CurrentStateidIsTheOneLockLeft) {
  nfs4::UnlockArguments unlock{LockType::kWrite, 0, nfs4::Stateid::current(), 0, 10};
  EXPECT_EQ(first_.client.status({nfs4::PutFileHandleArguments{first_.handle},
                                  first_.arguments(LockType::kWrite, 0, 10, "a"), unlock}),
            Status::kOk);
  EXPECT_TRUE(second_.lock(LockType::kWrite, 0, 10).ok());
}

TEST_F(LockTest, OwnerThatIsNamedAnewKeepsItsStateid) {
  const auto held = first_.lock(LockType::kRead, 0, 10);
  const auto again = first_.lock(LockType::kRead, 20, 10);
  EXPECT_EQ(held.result.lock_stateid.other, again.result.lock_stateid.other);
  EXPECT_EQ(again.result.lock_stateid.seqid, 2U);
  EXPECT_EQ(server_->locks.size(), 1U);
}

TEST_F(LockTest, DeniedLockMakesNoState) {
  ASSERT_TRUE(first_.lock(LockType::kWrite, 0, 10).ok());
  EXPECT_EQ(second_.lock(LockType::kWrite, 0, 10).status, Status::kDenied);
  EXPECT_EQ(server_->locks.size(), 1U);
}

TEST_F(LockTest, ModeOfTheOpenBoundsTheLock) {
  Locker reader(*server_, "reader", kShareRead);
  EXPECT_EQ(reader.lock(LockType::kWrite, 0, 1).status, Status::kOpenMode);
  EXPECT_TRUE(reader.lock(LockType::kRead, 0, 1).ok());
  Locker writer(*server_, "writer", kShareWrite);
  EXPECT_EQ(writer.lock(LockType::kRead, 0, 1).status, Status::kOpenMode);
}

TEST_F(LockTest, RangesThatAreNoneAreInvalid) {
  EXPECT_EQ(first_.lock(LockType::kWrite, 0, 0).status, Status::kInval);
  EXPECT_EQ(first_.lock(LockType::kWrite, 2, kToTheEnd - 1).status, Status::kInval);
  EXPECT_EQ(first_.test(LockType::kWrite, 0, 0).status, Status::kInval);
  const auto held = first_.lock(LockType::kWrite, 0, 10);
  EXPECT_EQ(first_.unlock(held.result.lock_stateid, 0, 0).status, Status::kInval);
}

TEST_F(LockTest, OnlyRegularFilesAreLocked) {
  nfs4::CreateArguments directory;
  directory.type = nfs4::CreateType::make<nfs4::FileType::kDirectory>();
  directory.name = "d";
  ASSERT_EQ(first_.client.status({nfs4::PutRootFileHandleArguments{}, directory}), Status::kOk);
  const auto lock = first_.arguments(LockType::kWrite, 0, 1, "a");
  EXPECT_EQ(first_.client.status({nfs4::PutRootFileHandleArguments{}, lock}), Status::kIsDir);
  EXPECT_EQ(first_.client.status({lock}), Status::kNoFileHandle);
}

TEST_F(LockTest, LockStateidIsGoodForIo) {
  const auto held = first_.lock(LockType::kWrite, 0, 10);
  EXPECT_EQ(first_.write(held.result.lock_stateid), Status::kOk);
  Locker reader(*server_, "reader", kShareRead);
  const auto reading = reader.lock(LockType::kRead, 100, 1);
  EXPECT_EQ(reader.write(reading.result.lock_stateid), Status::kOpenMode);
}

TEST_F(LockTest, StateidIsTestedAndFreedWhenNothingIsLocked) {
  const auto held = first_.lock(LockType::kWrite, 0, 10);
  nfs4::TestStateidArguments test;
  test.stateids = {{held.result.lock_stateid}};
  const auto results = first_.client.call({test});
  EXPECT_EQ(response_at<nfs4::TestStateidResponse>(results, 0).result.statuses.at(0), Status::kOk);
  EXPECT_EQ(first_.free(held.result.lock_stateid), Status::kLocksHeld);
  const auto unlocked = first_.unlock(held.result.lock_stateid, 0, kToTheEnd);
  EXPECT_EQ(second_.free(unlocked.result.lock_stateid), Status::kBadStateid);
  EXPECT_EQ(first_.free(unlocked.result.lock_stateid), Status::kOk);
  EXPECT_EQ(server_->locks.size(), 0U);
  EXPECT_EQ(first_.free(unlocked.result.lock_stateid), Status::kBadStateid);
}

TEST_F(LockTest, CloseReleasesTheLocksOfItsOpen) {
  ASSERT_TRUE(first_.lock(LockType::kWrite, 0, 10, "a").ok());
  ASSERT_TRUE(first_.lock(LockType::kWrite, 10, 10, "b").ok());
  ASSERT_EQ(first_.close(), Status::kOk);
  EXPECT_EQ(server_->locks.size(), 0U);
  EXPECT_TRUE(second_.lock(LockType::kWrite, 0, kToTheEnd).ok());
}

TEST_F(LockTest, EndOfALeaseReleasesThem) {
  ASSERT_TRUE(first_.lock(LockType::kWrite, 0, 10).ok());
  for (int i = 0; i < 2; ++i) {
    host_.clock.advance(Milliseconds(20'000));
    EXPECT_EQ(second_.lock(LockType::kWrite, 0, 10).status, Status::kDenied);
  }
  server_->leases.expire_due();
  EXPECT_TRUE(second_.lock(LockType::kWrite, 0, 10).ok());
  EXPECT_EQ(first_.client.call({}).status, Status::kBadSession);
}

TEST_F(LockTest, RestartOnTheSameBootKeepsThem) {
  const auto held = first_.lock(LockType::kWrite, 0, 10);
  const auto unlocked = first_.unlock(held.result.lock_stateid, 5, 1);
  ASSERT_EQ(second_.lock(LockType::kRead, 100, 10).status, Status::kOk);
  ASSERT_EQ(second_.close(), Status::kOk);
  server_ = nullptr;
  TestServer again(host_);
  EXPECT_EQ(again.locks.size(), 1U);
  Locker first(again, first_);
  Locker second(again, "third");
  EXPECT_EQ(second.lock(LockType::kWrite, 4, 1).status, Status::kDenied);
  EXPECT_TRUE(second.lock(LockType::kWrite, 5, 1).ok());
  EXPECT_EQ(second.lock(LockType::kWrite, 6, 1).status, Status::kDenied);
  EXPECT_TRUE(first.unlock(unlocked.result.lock_stateid, 0, 10).ok());
  EXPECT_TRUE(second.lock(LockType::kWrite, 0, 10).ok());
}

TEST_F(LockTest, RebootOfTheHostLetsThemBeReclaimedInGrace) {
  ASSERT_TRUE(first_.lock(LockType::kWrite, 0, 10).ok());
  server_ = nullptr;
  TestServer again(host_, {TestServer::default_export()}, /*same_boot=*/false);
  EXPECT_EQ(again.locks.size(), 0U);
  TestClient back(again, "first");
  const auto exchanged = back.exchange_id();
  back.id = exchanged.result.client_id;
  ASSERT_TRUE(back.create_session(exchanged.result.sequence_id).ok());
  auto reopen = back.open_arguments("", kShareBoth);
  reopen.claim = nfs4::OpenClaim::of(nfs4::ClaimType::kPrevious);
  auto lock = first_.arguments(LockType::kWrite, 0, 10, "a");
  lock.locker.get_if<nfs4::Locker::kNewOwner>()->open_stateid = nfs4::Stateid::current();
  const nfs4::ArgumentOperation file = nfs4::PutFileHandleArguments{first_.handle};
  EXPECT_EQ(back.status({file, reopen, lock}), Status::kGrace);
  EXPECT_EQ(back.status({file, nfs4::LockTestArguments{LockType::kRead, 0, 1, {}}}), Status::kGrace);
  lock.reclaim = true;
  EXPECT_EQ(back.status({file, reopen, lock}), Status::kOk);
  auto rival = lock;
  rival.locker.get_if<nfs4::Locker::kNewOwner>()->lock_owner.owner = nfs4::OwnerId(as_bytes("b"));
  EXPECT_EQ(back.status({file, reopen, rival}), Status::kReclaimConflict);
  ASSERT_EQ(back.status({nfs4::ReclaimCompleteArguments{}}), Status::kOk);
  EXPECT_EQ(back.status({file, reopen}), Status::kNoGrace);
  host_.clock.advance(Milliseconds(31'000));  // the other client never comes back
  auto late = back.open_arguments("", kShareBoth);
  late.claim = nfs4::OpenClaim::of(nfs4::ClaimType::kFileHandle);
  EXPECT_EQ(back.status({file, late, lock}), Status::kNoGrace);
}

TEST_F(LockTest, TooManyRangesAreRefusedAndChangeNothing) {
  nfs4::Stateid stateid = first_.lock(LockType::kWrite, 0, 1).result.lock_stateid;
  for (uint64_t i = 1; i < kLockRangesMax; ++i) {
    ASSERT_TRUE(first_.lock(LockType::kWrite, 2 * i, 1).ok());
  }
  EXPECT_EQ(first_.lock(LockType::kWrite, 2 * kLockRangesMax, 1).status, Status::kServerFault);
  EXPECT_TRUE(second_.lock(LockType::kWrite, 2 * kLockRangesMax, 1).ok());
  stateid.seqid = 0;
  EXPECT_TRUE(first_.unlock(stateid, 0, kToTheEnd).ok());
}

// Who waits for other bytes than those that are released is left alone.
TEST_F(LockTest, OnlyWhoWaitsForReleasedBytesIsTold) {
  const auto low = first_.lock(LockType::kWrite, 0, 10);
  ASSERT_TRUE(first_.lock(LockType::kWrite, 100, 10).ok());
  EXPECT_EQ(second_.lock(LockType::kWriteWait, 100, 10).status, Status::kDenied);
  nfs4::Stateid stateid = low.result.lock_stateid;
  stateid.seqid = 0;
  ASSERT_TRUE(first_.unlock(stateid, 0, 10).ok());
  EXPECT_EQ(server_->lock_waiters.size(), 1U);
  ASSERT_TRUE(first_.unlock(stateid, 105, 1).ok());
  EXPECT_EQ(server_->lock_waiters.size(), 1U) << "the rest is still locked";
  ASSERT_TRUE(first_.unlock(stateid, 100, 10).ok());
  EXPECT_EQ(server_->lock_waiters.size(), 0U);
}

// A CLOSE of an open with many lock owners.
class ManyLocksTest : public LockTest {
 protected:
  static constexpr size_t kLocks = 3000;

  ManyLocksTest() {
    for (size_t i = 0; i < kLocks; ++i) {
      LockState lock;
      lock.other = make_stateid_other(StateKind::kLock, SteadyTime(), host_.random);
      lock.client = first_.client.id;
      lock.inode = inode_;
      lock.owner = Bytes(8);
      store_big_endian(lock.owner.data(), uint64_t{i});
      lock.open = first_.open.other;
      lock.ranges.lock({4 * i, 4 * i + 1, true});
      CHECK(server_->state_store.put(lock).has_value());
      server_->locks.add(std::move(lock));
    }
    server_->leases.start(*loop_, Milliseconds(1000));
    nfs4::CloseArguments close;
    close.open_stateid = first_.open;
    reply_ =
        server_->begin({first_.client.next_sequence(), nfs4::PutFileHandleArguments{first_.handle}, close});
  }
  ~ManyLocksTest() override { server_ = nullptr; }  // before the loop

  size_t left() const { return server_->locks.locks_of_client(first_.client.id).size(); }

  std::unique_ptr<EventLoop> loop_ = std::make_unique<EventLoop>(host_.clock);
  const uint64_t inode_ = server_->opens.find(first_.open.other)->inode;
  std::shared_ptr<std::shared_ptr<const Bytes>> reply_;
};

TEST_F(ManyLocksTest, GoSoManyATurnBeforeTheOpenDoes) {
  EXPECT_GT(left(), kLocks - 300) << "in the turn of the CLOSE";
  while (left() > 300) {
    const size_t before = left();
    EXPECT_NE(server_->opens.find(first_.open.other), nullptr);
    const LockState* const last = *server_->locks.locks_of_client(first_.client.id).rbegin();
    EXPECT_EQ(second_.lock(LockType::kWrite, last->ranges.all().front().first, 1).status, Status::kDenied);
    loop_->run_once(Milliseconds(0));
    ASSERT_LT(left(), before);
    EXPECT_LE(before - left(), 300U) << "in one turn";
  }
  for (int turn = 0; turn < 3; ++turn) {
    loop_->run_once(Milliseconds(0));
    host_.turn();
  }
  EXPECT_EQ(left(), 0U);
  EXPECT_EQ(server_->opens.find(first_.open.other), nullptr);
  ASSERT_NE(*reply_, nullptr);
  EXPECT_EQ(xdr::decode_from<nfs4::CompoundResults>(**reply_)->status, Status::kOk);
}

TEST_F(ManyLocksTest, ARestartLeavesTheOpenWithTheRestAndCloseGoesOn) {
  loop_->run_once(Milliseconds(0));
  const size_t kept = left();
  ASSERT_GT(kept, 0U);
  server_ = nullptr;
  server_ = std::make_unique<TestServer>(host_);
  Locker back(*server_, first_);
  EXPECT_NE(server_->opens.find(first_.open.other), nullptr);
  EXPECT_EQ(left(), kept);
  EXPECT_EQ(back.close(), Status::kOk);
  EXPECT_EQ(left(), 0U);
  server_ = nullptr;
  server_ = std::make_unique<TestServer>(host_);
  EXPECT_EQ(server_->locks.size(), 0U);
}

TEST_F(ManyLocksTest, WhatTheStoreRefusesStaysAndIsClosedLater) {
  host_.store.stall(1);
  for (int turn = 0; turn < 3; ++turn) {
    loop_->run_once(Milliseconds(0));
    host_.turn();
  }
  EXPECT_GT(left(), 0U);
  ASSERT_NE(*reply_, nullptr);
  EXPECT_EQ(xdr::decode_from<nfs4::CompoundResults>(**reply_)->status, Status::kDelay);
  EXPECT_NE(server_->opens.find(first_.open.other), nullptr);
}

// A COMPOUND has room for 63 of them.
TEST_F(LockTest, GivingUpManyRangesTakesATurnOfItsOwn) {
  const LockState* held = nullptr;
  nfs4::Stateid stateid;
  for (uint64_t i = 0; i < 300; ++i) {
    const auto locked = first_.lock(LockType::kWrite, 2 * i, 1);
    ASSERT_TRUE(locked.ok());
    stateid = locked.result.lock_stateid;
  }
  held = server_->locks.find(stateid.other);
  EventLoop loop(host_.clock);
  server_->leases.start(loop, Milliseconds(1000));
  const nfs4::UnlockArguments unlock{LockType::kWrite, 0, stateid, 0, kToTheEnd};
  const auto reply =
      server_->begin({first_.client.next_sequence(), nfs4::PutFileHandleArguments{first_.handle}, unlock});
  EXPECT_EQ(held->ranges.all().size(), 300U);
  loop.run_once(Milliseconds(0));
  EXPECT_TRUE(held->ranges.empty());
  host_.turn();
  ASSERT_NE(*reply, nullptr);
  EXPECT_EQ(xdr::decode_from<nfs4::CompoundResults>(**reply)->status, Status::kOk);
  server_ = nullptr;  // before the loop
}

// Everybody waits for the whole file, which was locked piece by piece: nobody is looked at for each of them.
TEST_F(LockTest, ManyWaitersAreLookedAtOnceAndSoManyAreTold) {
  constexpr size_t kWaiters = 4000;
  const auto locked = first_.lock(LockType::kWrite, 0, 1);
  nfs4::Stateid stateid = locked.result.lock_stateid;
  LockState many = *server_->locks.find(stateid.other);
  for (uint64_t i = 1; i < kLockRangesMax; ++i) many.ranges.lock({2 * i, 2 * i, true});
  const uint64_t inode = many.inode;
  server_->locks.replace(*server_->locks.find(stateid.other), std::move(many));
  for (uint64_t i = 0; i < kWaiters; ++i) {
    Bytes owner(8);
    store_big_endian(owner.data(), i);
    server_->lock_waiters.add({second_.client.id, inode, {}, owner, {0, kToTheEnd, false}});
  }
  ASSERT_EQ(server_->lock_waiters.size(), kWaiters);
  timespec begun{};
  timespec ended{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begun);
  ASSERT_TRUE(first_.unlock(stateid, 0, kToTheEnd).ok());
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ended);
  EXPECT_LT(ended.tv_sec - begun.tv_sec, 2)
      << "with sanitizers some hundredths; with a look for each a minute";
  EXPECT_EQ(server_->lock_waiters.size(), kWaiters - 128);
}

TEST_F(LockTest, WaiterIsRememberedUntilItHasTheLockOrIsTold) {
  const auto held = first_.lock(LockType::kWrite, 0, 10);
  EXPECT_EQ(second_.lock(LockType::kWrite, 0, 10).status, Status::kDenied);
  EXPECT_EQ(server_->lock_waiters.size(), 0U);
  EXPECT_EQ(second_.lock(LockType::kWriteWait, 0, 10).status, Status::kDenied);
  EXPECT_EQ(second_.lock(LockType::kWriteWait, 0, 10).status, Status::kDenied);
  EXPECT_EQ(server_->lock_waiters.size(), 1U);
  nfs4::Stateid stateid = held.result.lock_stateid;
  stateid.seqid = 0;
  ASSERT_TRUE(first_.unlock(stateid, 0, 5).ok());
  EXPECT_EQ(server_->lock_waiters.size(), 1U);
  ASSERT_TRUE(first_.unlock(stateid, 5, 5).ok());
  EXPECT_EQ(server_->lock_waiters.size(), 0U);
  EXPECT_TRUE(second_.lock(LockType::kWriteWait, 0, 10).ok());
  EXPECT_EQ(server_->lock_waiters.size(), 0U);
}

}  // namespace
}  // namespace pnfsrdma::mds
