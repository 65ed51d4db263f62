// SPDX-License-Identifier: Apache-2.0
#include "fuse-client/delegations.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "tests/unit/initiator/session/scripted_mds.h"

namespace pnfsrdma::fuse_client {
namespace {

using initiator::ScriptedMds;
using nfs4::Status;

nfs4::Stateid stateid(uint8_t number) {
  nfs4::Stateid made{.seqid = 1};
  made.other.fill(std::byte{number});
  return made;
}

class DelegationsTest : public testing::Test {
 protected:
  DelegationsTest() {
    mds_.on_operation = [this](const ScriptedMds::Operation& operation) -> ScriptedMds::Answer {
      if (const auto* one = std::get_if<nfs4::DelegationReturnArguments>(&operation)) {
        returned_.push_back(one->stateid);
        return nfs4::DelegationReturnResponse(nfs4::DelegationReturnResult{});
      }
      return nfs4::status_result(nfs4::operation_of(operation), Status::kOk);
    };
    session_ = std::move(*initiator::Session::start(
        {.host = "127.0.0.1", .port = mds_.port, .owner = "delegations"}, nullptr, nullptr));
    closes_ = std::make_unique<CloseQueue>(*session_);
  }

  std::shared_ptr<Inode> held(uint8_t number, Delegations& delegations) {
    auto inode =
        std::make_shared<Inode>(nfs4::FileHandle(as_bytes("file " + std::to_string(number))), number);
    delegations.take(inode, {.stateid = stateid(number)}, delegations.era());
    return inode;
  }
  // Has it been returned, when all has that will be?
  bool is_returned(const Inode& inode) {
    closes_->stop();
    return !inode.has_delegation(stateid(static_cast<uint8_t>(inode.id)));
  }

  std::vector<nfs4::Stateid> returned_;  // the server's thread writes; to be read when closes_ has stopped
  ScriptedMds mds_;
  std::unique_ptr<initiator::Session> session_;
  std::unique_ptr<CloseQueue> closes_;
};

TEST_F(DelegationsTest, ARecallNamesTheStateid) {
  Delegations delegations(*closes_);
  const auto file = held(1, delegations);
  file->begin_open();
  EXPECT_EQ(delegations.recall(file, file->handle, stateid(2)).status, Status::kBadStateid)
      << "its answer may arrive";
  EXPECT_EQ(closes_->revoked().all(), std::vector{stateid(2)}) << "to be freed if it comes to that";
  file->open_failed();
  EXPECT_EQ(delegations.counts().held, 1u);
  EXPECT_EQ(delegations.recall(file, file->handle, stateid(1)).status, Status::kOk);
  EXPECT_EQ(delegations.counts().held, 0u);
  EXPECT_EQ(delegations.counts().recalled, 1u);
  EXPECT_TRUE(is_returned(*file));
  EXPECT_EQ(returned_, std::vector{stateid(1)});
}

TEST_F(DelegationsTest, WhatCameWithALostAnswerIsReturnedWhenItIsRecalled) {
  Delegations delegations(*closes_);
  const auto file = held(1, delegations);
  EXPECT_EQ(delegations.recall(file, file->handle, stateid(2)).status, Status::kOk);
  EXPECT_EQ(delegations.recall(nullptr, nfs4::FileHandle(as_bytes("forgotten")), stateid(3)).status,
            Status::kOk);
  EXPECT_FALSE(is_returned(*file));
  EXPECT_EQ(std::ranges::count(returned_, stateid(2)), 1);
  EXPECT_EQ(std::ranges::count(returned_, stateid(3)), 1);
  EXPECT_EQ(returned_.size(), 2u);
}

TEST_F(DelegationsTest, WhatWasAskedForBeforeTheStateWasInDoubtIsReturned) {
  Delegations delegations(*closes_);
  const uint64_t before = delegations.era();
  delegations.end_all();
  const auto file = std::make_shared<Inode>(nfs4::FileHandle(as_bytes("late")), 1);
  delegations.take(file, {.stateid = stateid(1)}, before);
  EXPECT_EQ(delegations.counts().held, 0u);
  EXPECT_TRUE(is_returned(*file));
}

// The server tells of a recall only once: whoever answers it has to find what it is about.
// It would be returned, and then used.
TEST_F(DelegationsTest, ARecallOfAFileThatIsBeingCreatedWaitsForTheAnswer) {
  Delegations delegations(*closes_);
  const nfs4::FileHandle handle(as_bytes("new"));
  {
    const Delegations::Creating creating(delegations);
    const bool may_be_new = delegations.is_creating();
    EXPECT_EQ(delegations.recall(nullptr, handle, stateid(1), may_be_new).status, Status::kBadStateid);
  }
  EXPECT_FALSE(delegations.is_creating());
  EXPECT_EQ(delegations.recall(nullptr, handle, stateid(1), false).status, Status::kOk);
}

TEST_F(DelegationsTest, ARecallIsNotLostBesideTheAnswer) {
  Delegations delegations(*closes_);
  for (uint8_t number = 1; number < 100; ++number) {
    const auto file =
        std::make_shared<Inode>(nfs4::FileHandle(as_bytes("file " + std::to_string(number))), number);
    file->begin_open();
    std::thread server([&] {
      while (delegations.recall(file, file->handle, stateid(number)).status != Status::kOk)
        std::this_thread::yield();
    });
    delegations.take(file, {.stateid = stateid(number)}, delegations.era());
    file->open_failed();
    server.join();
    EXPECT_EQ(delegations.counts().held, 0u);
  }
}

TEST_F(DelegationsTest, TheOneThatWasUsedLongestAgoGoesFirst) {
  Delegations delegations(*closes_, 3);
  const auto first = held(1, delegations), second = held(2, delegations), third = held(3, delegations);
  delegations.used(*first);
  const auto fourth = held(4, delegations);
  EXPECT_EQ(delegations.counts().held, 3u);
  EXPECT_TRUE(is_returned(*second));
  for (const auto& file : {first, third, fourth}) EXPECT_FALSE(is_returned(*file));
}

TEST_F(DelegationsTest, TheServerMayAskForLess) {
  Delegations delegations(*closes_);
  const auto first = held(1, delegations), second = held(2, delegations);
  delegations.keep(2);
  EXPECT_EQ(delegations.counts().held, 2u);
  delegations.keep(1);
  EXPECT_TRUE(is_returned(*first));
  EXPECT_FALSE(is_returned(*second));
}

TEST_F(DelegationsTest, EachEndsOnce) {
  Delegations delegations(*closes_);
  const auto file = held(1, delegations);
  delegations.end(file);
  delegations.end(file);
  delegations.end_all();
  EXPECT_EQ(delegations.counts().held, 0u);
  EXPECT_EQ(delegations.counts().granted, 1u);
  EXPECT_TRUE(is_returned(*file));
}

}  // namespace
}  // namespace pnfsrdma::fuse_client
