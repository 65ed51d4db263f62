// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "shared/nfs4/pmem_layout.h"
#include "tests/unit/brickd/test_brick.h"
#include "tests/unit/brickd/test_client.h"

namespace pnfsrdma::brick {
namespace {

// Everything a client can do at a brick, over each transport.
class BrickData : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    claimed = brick.claim();
    ASSERT_EQ(claimed.status, Status::kOk);
    ASSERT_EQ(brick.alloc(0, 4), Status::kOk);
    ASSERT_EQ(brick.open_session(), Status::kOk);
  }
  Result<std::unique_ptr<TestClient>> connect(uint8_t ticket = 1) {
    return TestClient::connect(brick.transport(), brick.address(), ticket_of(ticket));
  }
  // A client that has said hello.
  std::unique_ptr<TestClient> greeted(uint8_t ticket = 1) {
    auto client = connect(ticket);
    EXPECT_TRUE(client) << client.error().to_string();
    EXPECT_TRUE((*client)->hello());
    return std::move(*client);
  }
  Grant grant(uint64_t logical, uint64_t length, bool writable = true) {
    const ExposeResult exposed = brick.expose(logical, length, writable);
    EXPECT_EQ(exposed.status, Status::kOk);
    return exposed.grants.at(0);
  }

  TestBrick brick{GetParam(),
                  {.lease = Milliseconds(60000), .limits = {.sessions = 4, .grants_per_session = 3000}}};
  ClaimResult claimed;
};

TEST_P(BrickData, WrittenBytesAreInThePoolAndComeBackByRead) {
  const auto client = greeted();
  const Grant target = grant(kBlock, kBlock);
  std::memset(client->scratch().data(), 0x42, 100000);
  ASSERT_EQ(client->write(target, 5000, 100000), rdma::Outcome::kSuccess);
  EXPECT_EQ(brick.memory(kBlock)[5000], std::byte{0x42});
  EXPECT_EQ(brick.memory(kBlock)[4999], std::byte{0});
  std::memset(client->scratch().data(), 0, 100000);
  ASSERT_EQ(client->read(target, 4999, 100001), rdma::Outcome::kSuccess);
  EXPECT_EQ(client->scratch()[0], std::byte{0});
  EXPECT_EQ(client->scratch()[100000], std::byte{0x42});
  EXPECT_EQ(brick.call(&Control::statistics).rdma_write_bytes, 100000u);
}

TEST_P(BrickData, WhatAClientHasMovedIsToldBySessionAndSurvivesItsConnection) {
  const auto traffic = [&] {
    const SessionTrafficResult told = brick.call(&Control::session_traffic);
    EXPECT_EQ(told.sessions.size(), 1u);
    return told.sessions.at(0);
  };
  {
    const auto client = greeted();
    const Grant target = grant(kBlock, kBlock);
    ASSERT_EQ(client->write(target, 0, 100000), rdma::Outcome::kSuccess);
    ASSERT_EQ(client->read(target, 0, 3000), rdma::Outcome::kSuccess);
    const StatisticsResult all = brick.call(&Control::statistics);
    EXPECT_EQ(traffic().write_bytes, 100000u);
    EXPECT_EQ(traffic().read_bytes, all.rdma_read_bytes);
    EXPECT_EQ(traffic().writes, all.rdma_writes);
    EXPECT_EQ(traffic().reads, all.rdma_reads);
  }
  const auto again = greeted();
  EXPECT_EQ(traffic().write_bytes, 100000u);
  ASSERT_EQ(again->write(grant(0, kBlock), 0, 5), rdma::Outcome::kSuccess);
  EXPECT_EQ(traffic().write_bytes, 100005u);
  EXPECT_EQ(traffic().write_bytes, brick.call(&Control::statistics).rdma_write_bytes);
}

TEST_P(BrickData, GrantsMadeBeforeTheConnectionAreInItsHello) {
  const ExposeResult exposed = brick.expose(0, 2 * kBlock);
  ASSERT_EQ(exposed.status, Status::kOk);
  EXPECT_EQ(exposed.connection, 0u);
  const auto client = connect();
  ASSERT_TRUE(client);
  const auto hello = (*client)->hello();
  ASSERT_TRUE(hello);
  EXPECT_EQ(hello->connection, 1u);
  EXPECT_EQ(hello->verifier, claimed.verifier);
  ASSERT_EQ(hello->grants.size(), 1u);
  EXPECT_EQ(hello->grants[0].grant, exposed.grants[0].grant);
  const Grant target{.grant = 1, .handle = hello->grants[0].handle, .address = hello->grants[0].address};
  EXPECT_EQ((*client)->read(target, 0, 4096), rdma::Outcome::kSuccess);
}

TEST_P(BrickData, LongHelloComesInParts) {
  for (int i = 0; i < 2500; ++i) ASSERT_EQ(brick.expose(0, 4096).status, Status::kOk);
  const auto client = connect();
  ASSERT_TRUE(client);
  const auto hello = (*client)->hello();
  ASSERT_TRUE(hello);
  EXPECT_EQ(hello->grants.size(), 2500u);
}

TEST_P(BrickData, WithdrawnHandleIsDeadWhenTheAnswerComes) {
  const auto client = greeted();
  const Grant target = grant(0, kBlock);
  ASSERT_EQ(client->write(target, 0, 4096), rdma::Outcome::kSuccess);
  ASSERT_EQ(brick.withdraw(target.grant), Status::kOk);
  EXPECT_EQ(brick.withdraw(target.grant), Status::kOk);
  std::memset(client->scratch().data(), 0x66, 4096);
  EXPECT_NE(client->write(target, 0, 4096), rdma::Outcome::kSuccess);
  EXPECT_NE(brick.memory(0)[0], std::byte{0x66});
}

TEST_P(BrickData, HandleReachesItsOwnBytesWithItsOwnRightsOnly) {
  const Grant own = grant(0, 4096);
  const Grant readable = grant(kBlock, 4096, false);
  const auto try_write = [&](const Grant& as, uint64_t offset, uint32_t length) {
    const auto client = connect();
    const auto hello = (*client)->hello();
    Grant fresh = as;
    for (const HelloGrant& known : hello->grants) {
      if (known.grant == as.grant) fresh.handle = known.handle, fresh.address = known.address;
    }
    return (*client)->write(fresh, offset, length);
  };
  EXPECT_EQ(try_write(own, 0, 4096), rdma::Outcome::kSuccess);
  EXPECT_NE(try_write(own, 1, 4096), rdma::Outcome::kSuccess);
  EXPECT_NE(try_write(own, kBlock, 1), rdma::Outcome::kSuccess);
  EXPECT_NE(try_write(readable, 0, 1), rdma::Outcome::kSuccess);
}

TEST_P(BrickData, HandleOfOneClientIsNothingToAnother) {
  ASSERT_EQ(brick.open_session(8, 2), Status::kOk);
  const auto first = greeted(1);
  const auto second = greeted(2);
  const Grant target = grant(0, kBlock);
  EXPECT_NE(second->write(target, 0, 16), rdma::Outcome::kSuccess);
  EXPECT_EQ(first->write(target, 0, 16), rdma::Outcome::kSuccess);
}

TEST_P(BrickData, SecondConnectionReplacesTheFirstAndItsHandles) {
  const auto first = greeted();
  const Grant old = grant(0, kBlock);
  const auto second = connect();
  ASSERT_TRUE(second);
  const auto hello = (*second)->hello();
  ASSERT_TRUE(hello);
  EXPECT_EQ(hello->connection, 2u);
  EXPECT_TRUE(first->ends());
  ASSERT_EQ(hello->grants.size(), 1u);
  EXPECT_NE(hello->grants[0].handle, old.handle);
  EXPECT_NE((*second)->write(old, 0, 16), rdma::Outcome::kSuccess);
}

TEST_P(BrickData, WithoutARightTicketNobodyComesIn) {
  const auto wrong = connect(9);
  ASSERT_FALSE(wrong);
  EXPECT_EQ(reject_reason(wrong.error()), RejectReason::kTicket) << wrong.error().to_string();
  EXPECT_FALSE(connect(0));
  ASSERT_EQ(brick.open_session(kClient, 3), Status::kOk);  // a new ticket: the old one is dead
  EXPECT_FALSE(connect(1));
  EXPECT_TRUE(connect(3));
}

TEST_P(BrickData, CommitMessagesAreCheckedAndAnswered) {
  const auto client = greeted();
  const Grant target = grant(0, 8192);
  const auto good = client->persist({1, {{{target.grant, 0, 8192}, {target.grant, 8192, 0}}}});
  ASSERT_TRUE(good);
  EXPECT_EQ(good->status, PersistStatus::kOk);
  EXPECT_EQ(good->id, 1u);
  EXPECT_EQ(good->verifier, claimed.verifier);
  EXPECT_EQ(client->persist({2, {{{target.grant, 1, 8192}}}})->status, PersistStatus::kBounds);
  EXPECT_EQ(client->persist({3, {{{target.grant, UINT64_MAX, 2}}}})->status, PersistStatus::kBounds);
  EXPECT_EQ(client->persist({4, {{{target.grant + 1, 0, 1}}}})->status, PersistStatus::kUnknownGrant);
  EXPECT_EQ(brick.call(&Control::statistics).commit_messages, 4u);
}

TEST_P(BrickData, NativeFlushWorksWhereItIsAdvertised) {
  ASSERT_NE(claimed.flush_methods & nfs4::kFlushNative, 0u);
  const auto client = greeted();
  const Grant target = grant(0, kBlock);
  EXPECT_EQ(client->flush(target, 0, 4096), rdma::Outcome::kSuccess);
}

TEST_P(BrickData, ExpelledClientIsGone) {
  const auto client = greeted();
  const Grant target = grant(0, kBlock);
  ASSERT_EQ(brick.close_session(), Status::kOk);
  std::memset(client->scratch().data(), 0x66, 4096);
  EXPECT_NE(client->write(target, 0, 4096), rdma::Outcome::kSuccess);
  EXPECT_NE(brick.memory(0)[0], std::byte{0x66});
  EXPECT_TRUE(client->ends());
  EXPECT_FALSE(connect());
  EXPECT_EQ(brick.close_session(), Status::kNotFound);
}

TEST_P(BrickData, BrokenSessionsAreEnded) {
  auto client = greeted();
  client->send_buffer()[0] = std::byte{0xFF};
  client->send_bytes(8);
  EXPECT_TRUE(client->ends());

  client = std::move(*connect());
  client->send(PersistCall{1});  // before the hello
  EXPECT_TRUE(client->ends());

  client = greeted();
  client->send(HelloReply{});
  EXPECT_TRUE(client->ends());
  EXPECT_TRUE(greeted()->persist({1}));
}

TEST_P(BrickData, ClientThatOverrunsItsCreditsIsCutOff) {
  const auto client = greeted();
  client->flood(PersistCall{1}, 5 * kSessionCredits);
  EXPECT_TRUE(client->ends());
  EXPECT_TRUE(greeted()->persist({1}));
}

TEST_P(BrickData, AllCreditsAreGoodAgainWhenTheAnswersAreThere) {
  const auto client = greeted();
  for (int burst = 0; burst < 20; ++burst) {
    client->flood(PersistCall{1}, kSessionCredits);
    for (uint32_t answers = 0; answers < kSessionCredits; ++answers) ASSERT_TRUE(client->receive());
  }
}

TEST_P(BrickData, ClientThatPostsNoReceivesHurtsOnlyItself) {
  ASSERT_EQ(brick.open_session(8, 2), Status::kOk);
  const auto deaf = TestClient::connect(brick.transport(), brick.address(), ticket_of(2), 0);
  ASSERT_TRUE(deaf);
  (*deaf)->flood(HelloCall{}, 3);
  const auto other = greeted(1);
  const Grant target = grant(0, kBlock);
  EXPECT_EQ(other->write(target, 0, 4096), rdma::Outcome::kSuccess);
  const ExposeResult exposed = brick.expose(kBlock, kBlock, true, 8);
  ASSERT_EQ(exposed.status, Status::kOk);
  EXPECT_EQ(brick.withdraw(exposed.grants[0].grant, 8), Status::kOk);
  EXPECT_EQ(brick.close_session(8), Status::kOk);
  EXPECT_TRUE(other->persist({1}));
}

TEST_P(BrickData, RevocationWhileWritesStreamLeavesTheMemoryAlone) {
  ASSERT_EQ(brick.open_session(8, 2), Status::kOk);
  const auto streaming = greeted(1);
  const auto other = greeted(2);
  const Grant target = grant(0, kBlock);
  const Grant others = brick.expose(kBlock, kBlock, true, 8).grants.at(0);
  std::memset(streaming->scratch().data(), 0x99, TestClient::kScratch);
  std::thread stream([&] {
    while (streaming->write(target, 0, TestClient::kScratch) == rdma::Outcome::kSuccess) {
    }
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  ASSERT_EQ(brick.withdraw(target.grant), Status::kOk);
  std::memset(brick.memory(0), 0, kBlock);
  stream.join();
  const std::byte* memory = brick.memory(0);
  EXPECT_TRUE(std::all_of(memory, memory + kBlock, [](std::byte byte) { return byte == std::byte{0}; }));
  EXPECT_EQ(other->write(others, 0, 4096), rdma::Outcome::kSuccess);
}

TEST_P(BrickData, ExposedBlocksCannotBeFreed) {
  const Grant target = grant(0, kBlock);
  const BlocksArguments blocks{kEpoch, {{{0, 1}}}};
  EXPECT_EQ(brick.call(&Control::free, blocks).status, Status::kBusy);
  EXPECT_EQ(brick.call(&Control::unmap, blocks).status, Status::kBusy);
  ASSERT_EQ(brick.withdraw(target.grant), Status::kOk);
  EXPECT_EQ(brick.call(&Control::free, blocks).status, Status::kOk);
}

TEST_P(BrickData, NewBrickShutsDownWithClientsConnected) {
  const auto client = greeted();
  {
    TestBrick other(GetParam());
    other.claim();
    other.alloc(0, 1);
    other.open_session();
    other.expose(0, kBlock);
    const auto guest = TestClient::connect(other.transport(), other.address(), ticket_of(1));
    ASSERT_TRUE(guest);
    ASSERT_TRUE((*guest)->hello());
  }
  EXPECT_EQ(client->persist({1})->status, PersistStatus::kOk);
}

INSTANTIATE_TEST_SUITE_P(Transports, BrickData, testing::Values("memory", "iwarp"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace pnfsrdma::brick
