// SPDX-License-Identifier: Apache-2.0
#include "fuse-client/close_queue.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <string>
#include <thread>

#include "shared/nfs4/open_operations.h"
#include "tests/unit/initiator/session/scripted_mds.h"

namespace pnfsrdma::fuse_client {
namespace {

using initiator::ScriptedMds;
using nfs4::Status;

nfs4::Stateid open_stateid(uint8_t number) {
  nfs4::Stateid made{.seqid = 1};
  made.other.fill(std::byte{number});
  return made;
}

// A server that notes what is closed and with how many others, and refuses the stateids it is told to.
class CloseQueueTest : public testing::Test {
 protected:
  CloseQueueTest() {
    mds_.on_operation = [this](const ScriptedMds::Operation& operation) { return answer(operation); };
    session_ = std::move(*initiator::Session::start({.host = "127.0.0.1",
                                                     .port = mds_.port,
                                                     .owner = "closes",
                                                     .persistence = initiator::Persistence::kSoftError,
                                                     .timeout = Milliseconds(300),
                                                     .retransmissions = 0},
                                                    nullptr, nullptr));
  }

  static std::shared_ptr<Inode> open(uint8_t number, uint32_t user = 0,
                                     uint32_t access = nfs4::kShareAccessRead) {
    auto inode =
        std::make_shared<Inode>(nfs4::FileHandle(as_bytes("file " + std::to_string(number))), number);
    reopen(*inode, number, user, access);
    return inode;
  }
  static void reopen(Inode& inode, uint8_t number, uint32_t user = 0,
                     uint32_t access = nfs4::kShareAccessRead) {
    inode.begin_open();
    inode.opened(open_stateid(number), access, {user, user, {}});
  }
  static void release(const std::shared_ptr<Inode>& inode, CloseQueue& queue) {
    ASSERT_TRUE(inode->release());
    inode->settled();
    queue.add(inode);
  }
  size_t closed() {
    const std::lock_guard guard(mds_.mutex);
    return closed_.size();
  }
  uint32_t compounds() {
    const std::lock_guard guard(mds_.mutex);
    return mds_.executed;
  }

  // Guarded by mds_.mutex.
  std::multiset<std::byte> closed_;
  std::set<std::byte> refused_;
  Status refusal_ = Status::kDelegRevoked;  // of delegations
  std::vector<std::byte> returned_;
  std::vector<nfs4::Operation> asked_;  // LOCK and DELEGRETURN
  Milliseconds pause_{0};
  std::function<void()> when_closed_;
  ScriptedMds mds_;
  std::unique_ptr<initiator::Session> session_;

 private:
  // Called with mds_.mutex held.
  ScriptedMds::Answer answer(const ScriptedMds::Operation& operation) {
    if (const auto* given = std::get_if<nfs4::DelegationReturnArguments>(&operation)) {
      asked_.push_back(nfs4::Operation::kDelegationReturn);
      returned_.push_back(given->stateid.other[0]);
      const bool is_refused = refused_.contains(given->stateid.other[0]);
      return nfs4::DelegationReturnResponse(is_refused ? refusal_ : Status::kOk);
    }
    if (std::holds_alternative<nfs4::LockArguments>(operation)) {
      asked_.push_back(nfs4::Operation::kLock);
      if (pause_ > Milliseconds(0)) std::this_thread::sleep_for(pause_ / 10);  // about ten to a COMPOUND
      return nfs4::LockResponse(nfs4::LockResult{open_stateid(200)});
    }
    if (const auto* test = std::get_if<nfs4::TestStateidArguments>(&operation)) {
      nfs4::TestStateidResult tested;
      tested.statuses.assign(test->stateids.size(), Status::kOk);
      return nfs4::TestStateidResponse(std::move(tested));
    }
    const auto* close = std::get_if<nfs4::CloseArguments>(&operation);
    if (close == nullptr) return nfs4::status_result(nfs4::operation_of(operation), Status::kOk);
    closed_.insert(close->open_stateid.other[0]);
    if (when_closed_) when_closed_();
    if (refused_.contains(close->open_stateid.other[0]))
      return nfs4::status_result(nfs4::Operation::kClose, Status::kBadStateid);
    return nfs4::CloseResponse(nfs4::CloseResult{});
  }
};

TEST_F(CloseQueueTest, SixteenGoTogether) {
  std::vector<std::shared_ptr<Inode>> files;
  const uint32_t before = compounds();
  {
    CloseQueue queue(*session_);
    for (uint8_t number = 1; number <= 32; ++number) {
      files.push_back(open(number));
      release(files.back(), queue);
    }
  }
  EXPECT_EQ(closed(), 32u);
  // Which of them meet is the threads' affair; one by one they were not.
  EXPECT_LE(compounds() - before, 4u);
  for (const auto& file : files) EXPECT_FALSE(file->is_open());
}

// Also while the server is being called, and not behind its answer.
TEST_F(CloseQueueTest, AFileIsOwedUntilTheServerHasAnswered) {
  CloseQueue queue(*session_);
  EXPECT_EQ(queue.owed(), 0u);
  size_t while_called = 0;
  {
    const std::lock_guard guard(mds_.mutex);
    when_closed_ = [&] { while_called = queue.owed(); };
  }
  release(open(1), queue);
  queue.stop();
  EXPECT_EQ(closed(), 1u);
  EXPECT_EQ(while_called, 1u);
  EXPECT_EQ(queue.owed(), 0u);
}

TEST_F(CloseQueueTest, WhatTheServerRefusesDoesNotKeepTheOthersOpen) {
  refused_ = {std::byte{2}, std::byte{5}};
  {
    CloseQueue queue(*session_);
    for (uint8_t number = 1; number <= 6; ++number) release(open(number), queue);
  }
  EXPECT_EQ(closed(), 6u);
  for (uint8_t number = 1; number <= 6; ++number) EXPECT_EQ(closed_.count(std::byte{number}), 1u);
}

TEST_F(CloseQueueTest, ACallIsInOneName) {
  const uint32_t before = compounds();
  {
    CloseQueue queue(*session_);
    for (uint8_t number = 1; number <= 6; ++number) release(open(number, number % 3), queue);
  }
  EXPECT_EQ(closed(), 6u);
  EXPECT_EQ(compounds() - before, 6u);  // no two neighbours have the same
}

TEST_F(CloseQueueTest, OpenAgainIsNotClosed) {
  const auto file = open(1);
  {
    CloseQueue queue(*session_);
    release(file, queue);
    reopen(*file, 1);
  }
  EXPECT_EQ(closed(), 0u);
  EXPECT_TRUE(file->is_open());
}

TEST_F(CloseQueueTest, ADelegationThatEndsIsReturnedAtOnceWithTheOpenItHasKept) {
  const auto file = open(1), held_open = open(2);
  file->delegated({.stateid = open_stateid(101)});
  held_open->delegated({.stateid = open_stateid(102)});
  ASSERT_TRUE(file->release());
  ASSERT_TRUE(file->settled());
  CloseQueue queue(*session_);
  for (const auto& ending : {file, held_open}) {
    ASSERT_TRUE(ending->end_delegation());
    queue.add(ending, CloseQueue::When::kAtOnce);
  }
  queue.stop();
  EXPECT_EQ(closed(), 1u);
  const std::lock_guard guard(mds_.mutex);
  EXPECT_EQ(returned_.size(), 2u);
  EXPECT_FALSE(file->is_open());
  EXPECT_TRUE(held_open->is_open());
  EXPECT_FALSE(file->has_delegation(open_stateid(101)));
  EXPECT_TRUE(queue.revoked().all().empty());
}

// Else a recall would wait for the calls that may wait for it.
TEST_F(CloseQueueTest, ADelegationIsReturnedWhileAllOtherSlotsAreTaken) {
  {
    const std::lock_guard guard(mds_.mutex);
    mds_.slots = 2;
  }
  const auto session = std::move(*initiator::Session::start(
      {.host = "127.0.0.1", .port = mds_.port, .owner = "busy", .timeout = Milliseconds(60'000)}, nullptr,
      nullptr));
  {
    const std::lock_guard guard(mds_.mutex);
    mds_.faults = {ScriptedMds::Fault::kSilence};
  }
  const auto waiting = session->begin({nfs4::PutRootFileHandleArguments{}}, {});
  const auto file = open(1);
  file->delegated({.stateid = open_stateid(101)});
  ASSERT_TRUE(file->end_delegation());
  CloseQueue queue(*session);
  queue.add(file, CloseQueue::When::kAtOnce);
  const auto is_returned = [&] {
    const std::lock_guard guard(mds_.mutex);
    return returned_.size() == 1;
  };
  for (int tries = 0; tries < 500 && !is_returned(); ++tries) std::this_thread::sleep_for(Milliseconds(10));
  EXPECT_TRUE(is_returned());
  session->abort();
  queue.stop();
}

TEST_F(CloseQueueTest, ARevokedDelegationIsKeptInMindUntilItIsFreed) {
  refused_ = {std::byte{101}};
  const auto first = open(1), second = open(2);
  first->delegated({.stateid = open_stateid(101)});
  second->delegated({.stateid = open_stateid(102)});
  CloseQueue queue(*session_);
  for (const auto& ending : {first, second}) {
    ASSERT_TRUE(ending->end_delegation());
    queue.add(ending, CloseQueue::When::kAtOnce);
  }
  queue.stop();
  EXPECT_EQ(queue.revoked().all(), std::vector{open_stateid(101)});
  EXPECT_FALSE(second->has_delegation(open_stateid(102)));
}

// Of a file whose handle has ended, for example: the server does not take the return, and revokes it in the end.
TEST_F(CloseQueueTest, SoIsOneWhoseReturnIsNotTaken) {
  refused_ = {std::byte{101}, std::byte{102}};
  refusal_ = Status::kStale;
  const auto file = open(1);
  file->delegated({.stateid = open_stateid(101)});
  CloseQueue queue(*session_);
  ASSERT_TRUE(file->end_delegation());
  queue.add(file, CloseQueue::When::kAtOnce);
  queue.stop();
  EXPECT_EQ(queue.revoked().all(), std::vector{open_stateid(101)});
}

// RFC 8881, 10.4.4.
TEST_F(CloseQueueTest, WhatIsLockedUnderADelegationIsTheServersBeforeThatIsReturned) {
  const auto file = open(1, 0, nfs4::kShareAccessBoth);
  file->delegated({.stateid = open_stateid(101), .allows = nfs4::kShareAccessBoth});
  const auto lock = [&](uint64_t owner, const nfs4::LockRange& range) {
    return file->lock({LockOwner::Kind::kPosix, owner}, range, {}, SteadyTime(), SteadyTime::max());
  };
  ASSERT_EQ(lock(1, {0, 9, true}), FileLocks::Verdict::kGiven);
  ASSERT_EQ(lock(1, {20, 29, true}), FileLocks::Verdict::kGiven);
  ASSERT_EQ(lock(2, {10, 19, false}), FileLocks::Verdict::kGiven);
  CloseQueue queue(*session_);
  ASSERT_TRUE(file->end_delegation());
  queue.add(file, CloseQueue::When::kAtOnce);
  queue.stop();
  const std::lock_guard guard(mds_.mutex);
  EXPECT_EQ(asked_, (std::vector{nfs4::Operation::kLock, nfs4::Operation::kLock, nfs4::Operation::kLock,
                                 nfs4::Operation::kDelegationReturn}));
  EXPECT_FALSE(file->locks().are_here());
  EXPECT_EQ(file->locks().owners().size(), 2u);
  EXPECT_FALSE(file->locks().any_lost());
}

// Of one program in one file: what others have to return waits for a call or two, and not for all of them.
TEST_F(CloseQueueTest, OthersDoNotWaitForTheLocksOfOneFile) {
  const auto file = open(1, 0, nfs4::kShareAccessBoth);
  file->delegated({.stateid = open_stateid(101), .allows = nfs4::kShareAccessBoth});
  for (uint64_t i = 0; i < FileLocks::kRangesHereMax; ++i) {
    const nfs4::LockRange range{4 * i, 4 * i + 1, true};
    ASSERT_EQ(file->lock({LockOwner::Kind::kPosix, 1}, range, {}, SteadyTime(), SteadyTime::max()),
              FileLocks::Verdict::kGiven);
  }
  const auto other = open(2);
  other->delegated({.stateid = open_stateid(102)});
  {
    const std::lock_guard guard(mds_.mutex);
    pause_ = Milliseconds(20);
  }
  CloseQueue queue(*session_);
  ASSERT_TRUE(file->end_delegation());
  queue.add(file, CloseQueue::When::kAtOnce);
  std::this_thread::sleep_for(Milliseconds(200));
  ASSERT_TRUE(other->end_delegation());
  queue.add(other, CloseQueue::When::kAtOnce);
  release(open(3), queue);
  const auto is_done = [&] {
    const std::lock_guard guard(mds_.mutex);
    return !returned_.empty() && !closed_.empty();
  };
  const SteadyTime begun = steady_now();
  while (!is_done() && steady_now() - begun < Milliseconds(5000))
    std::this_thread::sleep_for(Milliseconds(5));
  EXPECT_LT(steady_now() - begun, Milliseconds(500));
  EXPECT_TRUE(file->locks().are_here()) << "it is still at these";
  queue.stop();
  const std::lock_guard guard(mds_.mutex);
  EXPECT_EQ(returned_, (std::vector{std::byte{102}, std::byte{101}}));
  EXPECT_FALSE(file->locks().any_lost());
}

TEST_F(CloseQueueTest, AnAbortedSessionEndsIt) {
  const auto file = open(1);
  {
    const std::lock_guard guard(mds_.mutex);
    mds_.faults = {ScriptedMds::Fault::kSilence};
  }
  CloseQueue queue(*session_);
  release(file, queue);
  session_->abort();
  queue.stop();
  EXPECT_FALSE(file->is_open());
}

}  // namespace
}  // namespace pnfsrdma::fuse_client
