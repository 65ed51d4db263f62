// SPDX-License-Identifier: Apache-2.0
// What clients hold is counted in the budget of memory, and refused beyond it.
#include <gtest/gtest.h>

#include "tests/unit/mds/ops/test_server.h"

namespace pnfsrdma::mds {
namespace {

using nfs4::Status;

class StateLimit : public ::testing::Test {
 protected:
  StateLimit() {
    host_.memory_limits.bytes = size_t{1} << 20;  // state: half of it, and of one address a quarter
    start();
  }
  void start() {
    server_ = nullptr;
    server_ = std::make_unique<TestServer>(host_);
  }
  std::unique_ptr<TestClient> join(const std::string& address, const std::string& owner) {
    server_->peer = address + ":900";
    auto client = std::make_unique<TestClient>(*server_, owner);
    client->connect();
    return client;
  }
  static nfs4::OpenResponse open(TestClient& client, const std::string& name, uint32_t access = kShareBoth) {
    auto arguments = client.open_arguments(name, access);
    arguments.how = creating(create_how(nfs4::CreateMode::kUnchecked, mode_attribute(0644)));
    return client.open(arguments);
  }
  static Status close(TestClient& client, const nfs4::FileHandle& handle, const nfs4::Stateid& stateid) {
    nfs4::CloseArguments arguments;
    arguments.open_stateid = stateid;
    return client.status({nfs4::PutFileHandleArguments{handle}, arguments});
  }
  static nfs4::LockArguments lock(const nfs4::Stateid& open, uint64_t offset, const std::string& owner) {
    nfs4::OpenToLockOwner first;
    first.open_stateid = open;
    first.open_stateid.seqid = 0;
    first.lock_owner.owner = nfs4::OwnerId(as_bytes(owner));
    nfs4::LockArguments arguments{
        .type = nfs4::LockType::kWrite, .reclaim = false, .offset = offset, .length = 10, .locker = {}};
    arguments.locker = nfs4::LockOwner::make<nfs4::Locker::kNewOwner>(first);
    return arguments;
  }
  // Opens files until there is no room; how many.
  size_t fill(TestClient& client, const std::string& prefix) {
    for (size_t i = 0; i < 10'000; ++i) {
      const auto opened = open(client, prefix + std::to_string(i));
      if (opened.status == Status::kDelay) return i;
      CHECK(opened.ok());
    }
    return 10'000;
  }

  TestHost host_;
  std::unique_ptr<TestServer> server_;
};

TEST_F(StateLimit, OneAddressTakesItsShareAndWhatItGivesBackIsThereAgain) {
  const auto client = join("10.0.0.1", "client");
  const auto first = open(*client, "first");
  const auto handle = client->last_handle;
  const size_t opens = fill(*client, "f");
  EXPECT_GT(opens, 300U);
  EXPECT_LT(opens, 600U);
  EXPECT_LE(server_->memory.state(), host_.memory_limits.bytes / 4 + 1024);
  EXPECT_EQ(client->open(client->open_arguments("f10000", kShareRead)).status, Status::kNoEnt)
      << "what is refused has made no file";

  EXPECT_TRUE(open(*client, "first").ok()) << "that is no new open";
  EXPECT_EQ(client->status({nfs4::PutFileHandleArguments{handle}, lock(first.result.stateid, 0, "a")}),
            Status::kDelay);
  nfs4::Stateid stateid = first.result.stateid;
  stateid.seqid = 0;
  EXPECT_EQ(close(*client, handle, stateid), Status::kOk);
  EXPECT_TRUE(open(*client, "again").ok());
  EXPECT_EQ(open(*client, "more").status, Status::kDelay);

  const auto other = join("10.0.0.2", "other");
  EXPECT_TRUE(open(*other, "g").ok());
  const auto neighbour = join("10.0.0.1", "neighbour");
  EXPECT_EQ(open(*neighbour, "h").status, Status::kDelay);
}

TEST_F(StateLimit, AllAddressesTogetherTakeHalf) {
  const auto first = join("10.0.0.1", "first");
  const auto second = join("10.0.0.2", "second");
  EXPECT_GT(fill(*first, "a"), 300U);
  EXPECT_GT(fill(*second, "b"), 300U);
  const auto third = join("10.0.0.3", "third");
  EXPECT_EQ(open(*third, "c").status, Status::kDelay);
  EXPECT_LE(server_->memory.state(), host_.memory_limits.bytes / 2 + 1024);
  for (const auto& client : {first.get(), second.get(), third.get()})
    server_->leases.retire(server_->clients.find(client->id), [] {});
  EXPECT_EQ(server_->memory.state(), 0U);
}

TEST_F(StateLimit, RangesCountAndUnlockingAlwaysGoes) {
  const auto client = join("10.0.0.1", "client");
  const auto opened = open(*client, "f");
  const auto handle = client->last_handle;
  uint64_t at = 0;
  Status status = Status::kOk;
  std::vector<nfs4::Stateid> held;
  for (int owner = 0; owner < 3 && status == Status::kOk; ++owner) {
    for (int i = 0; i < 2000 && status == Status::kOk; ++i, at += 20) {
      const auto locked = client->call({nfs4::PutFileHandleArguments{handle},
                                        lock(opened.result.stateid, at, "owner" + std::to_string(owner))});
      status = locked.status;
      if (status != Status::kOk) break;
      const auto& stateid = response_at<nfs4::LockResponse>(locked, 1).result.lock_stateid;
      if (i == 0) held.push_back(stateid);
      held.back() = stateid;
    }
  }
  EXPECT_EQ(status, Status::kDelay);
  EXPECT_GT(at / 20, 2000U);
  // The middle of a range: one more than before.
  nfs4::Stateid stateid = held.front();
  stateid.seqid = 0;
  const nfs4::UnlockArguments middle{nfs4::LockType::kWrite, 0, stateid, 3, 2};
  EXPECT_EQ(client->status({nfs4::PutFileHandleArguments{handle}, middle}), Status::kOk);
  const nfs4::UnlockArguments all{nfs4::LockType::kWrite, 0, stateid, 0, UINT64_MAX};
  EXPECT_EQ(client->status({nfs4::PutFileHandleArguments{handle}, all}), Status::kOk);
  EXPECT_EQ(client->status({nfs4::PutFileHandleArguments{handle}, lock(opened.result.stateid, 5, "late")}),
            Status::kOk);
  nfs4::Stateid closed = opened.result.stateid;
  closed.seqid = 0;
  EXPECT_EQ(close(*client, handle, closed), Status::kOk);
  EXPECT_EQ(server_->memory.state(), 0U);
}

// Of a larger budget, or of a version that did not count.
TEST_F(StateLimit, WhatAStartBringsStaysAndIsGivenBack) {
  host_.memory_limits.bytes = size_t{4} << 20;
  start();
  const auto client = join("10.0.0.1", "client");
  const auto first = open(*client, "first");
  const auto handle = client->last_handle;
  const size_t opens = fill(*client, "f");
  EXPECT_GT(opens, 1200U);
  host_.memory_limits.bytes = size_t{1} << 20;
  start();
  EXPECT_EQ(server_->opens.size(), opens + 1);
  TestClient back(*server_, "client");
  back.id = client->id;
  ASSERT_TRUE(back.create_session(client->create_sequence + 1).ok());
  EXPECT_EQ(open(back, "new").status, Status::kDelay);
  nfs4::Stateid stateid = first.result.stateid;
  stateid.seqid = 0;
  EXPECT_EQ(close(back, handle, stateid), Status::kOk);
  server_->leases.retire(server_->clients.find(back.id), [] {});
  EXPECT_EQ(server_->memory.state(), 0U);
}

}  // namespace
}  // namespace pnfsrdma::mds
