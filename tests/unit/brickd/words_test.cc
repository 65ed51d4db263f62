// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "tests/unit/brickd/pools.h"
#include "tests/unit/brickd/test_brick.h"
#include "tests/unit/brickd/test_client.h"

namespace pnfsrdma::brick {
namespace {

// Words that the brick changes for its clients, over each transport.
class BrickWords : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { begin(); }
  void begin(std::unique_ptr<Pool> pool = nullptr) {
    brick.emplace(GetParam(), BrickOptions{.lease = Milliseconds(60000)}, std::move(pool));
    ASSERT_EQ(brick->claim().status, Status::kOk);
    ASSERT_EQ(brick->alloc(0, 2), Status::kOk);
    ASSERT_EQ(brick->open_session(), Status::kOk);
  }
  std::unique_ptr<TestClient> greeted(uint8_t ticket = 1) {
    auto client = TestClient::connect(brick->transport(), brick->address(), ticket_of(ticket));
    EXPECT_TRUE(client) << client.error().to_string();
    EXPECT_TRUE((*client)->hello());
    return std::move(*client);
  }
  Grant grant(uint64_t logical = 0, bool writable = true, uint64_t client = kClient) {
    const ExposeResult exposed = brick->expose(logical, kBlock, writable, client);
    EXPECT_EQ(exposed.status, Status::kOk);
    return exposed.grants.at(0);
  }
  uint64_t word(uint64_t logical) {
    uint64_t value = 0;
    std::memcpy(&value, brick->memory(logical), sizeof value);
    return value;
  }
  static ChangeWordCall call(const TestClient& client, const Grant& on, WordChange change, uint64_t operand,
                             uint64_t sequence = 1) {
    return {.id = sequence + 100,
            .record = client.said().record,
            .sequence = sequence,
            .change = change,
            .grant = on.grant,
            .operand = operand};
  }
  static WordStatus status(TestClient& client, const ChangeWordCall& wanted) {
    const auto reply = client.ask<ChangeWordReply>(wanted);
    EXPECT_TRUE(reply);
    if (!reply) return WordStatus::kForgotten;
    EXPECT_EQ(reply->id, wanted.id);
    return reply->status;
  }

  // The brick's pool uses these until it ends, so they end after it.
  SystemRandom random;
  std::atomic<int> failures = 0;
  HeldPersistence::Gate gate;
  std::optional<TestBrick> brick;
};

TEST_P(BrickWords, AreStoredComparedAndAddedTo) {
  const auto client = greeted();
  EXPECT_NE(client->said().understands & kUnderstandsChangeWord, 0u);
  const Grant on = grant();
  auto reply = client->ask<ChangeWordReply>(call(*client, on, WordChange::kFetchAndAdd, 5, 1));
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->before, 0u);
  reply = client->ask<ChangeWordReply>(call(*client, on, WordChange::kFetchAndAdd, UINT64_MAX, 2));
  EXPECT_EQ(reply->before, 5u);
  EXPECT_EQ(word(0), 4u) << "it wraps";

  ChangeWordCall swap = call(*client, on, WordChange::kCompareAndSwap, 0x0123456789abcdef, 3);
  swap.expected = 5;
  reply = client->ask<ChangeWordReply>(swap);
  EXPECT_EQ(reply->before, 4u);
  EXPECT_EQ(word(0), 4u) << "it was another one";
  swap.expected = 4;
  swap.sequence = 4;
  EXPECT_EQ(client->ask<ChangeWordReply>(swap)->before, 4u);
  EXPECT_EQ(word(0), 0x0123456789abcdefu);
  EXPECT_EQ(brick->memory(0)[0], std::byte{0xef}) << "little-endian";

  ChangeWordCall store = call(*client, on, WordChange::kStore, 77, 5);
  store.offset = kBlock - 8;
  EXPECT_EQ(status(*client, store), WordStatus::kOk);
  EXPECT_EQ(word(kBlock - 8), 77u);
}

TEST_P(BrickWords, NothingIsChangedWithoutAGrantForWriting) {
  ASSERT_EQ(brick->open_session(8, 2), Status::kOk);
  const auto client = greeted();
  const Grant on = grant();
  const Grant readable = grant(0, false);
  const Grant others = grant(0, true, 8);
  uint64_t sequence = 0;
  const auto try_at = [&](uint64_t number, uint64_t offset) {
    ChangeWordCall wanted = call(*client, on, WordChange::kStore, 1, ++sequence);
    wanted.grant = number;
    wanted.offset = offset;
    return status(*client, wanted);
  };
  EXPECT_EQ(try_at(readable.grant, 0), WordStatus::kUnknownGrant);
  EXPECT_EQ(try_at(others.grant, 0), WordStatus::kUnknownGrant);
  EXPECT_EQ(try_at(on.grant + 1, 0), WordStatus::kUnknownGrant);
  for (const uint64_t offset : {uint64_t{1}, uint64_t{4}, kBlock - 4, kBlock, UINT64_MAX - 7})
    EXPECT_EQ(try_at(on.grant, offset), WordStatus::kInvalid) << offset;
  EXPECT_EQ(word(0), 0u);
  EXPECT_EQ(word(kBlock - 8), 0u);
  ASSERT_EQ(brick->withdraw(on.grant), Status::kOk);
  EXPECT_EQ(try_at(on.grant, 0), WordStatus::kUnknownGrant);
  EXPECT_EQ(word(0), 0u);
}

TEST_P(BrickWords, ACallThatComesAgainIsAnsweredAndNotMadeAgain) {
  auto client = greeted();
  const Grant on = grant();
  const ChangeWordCall first = call(*client, on, WordChange::kFetchAndAdd, 3, 1);
  ASSERT_EQ(status(*client, first), WordStatus::kOk);
  ASSERT_EQ(status(*client, call(*client, on, WordChange::kFetchAndAdd, 4, 2)), WordStatus::kOk);
  const uint64_t record = client->said().record;

  client = greeted();  // the session has outlived its connection
  ASSERT_EQ(client->said().record, record);
  const auto again = client->ask<ChangeWordReply>(call(*client, on, WordChange::kFetchAndAdd, 4, 2));
  ASSERT_TRUE(again);
  EXPECT_EQ(again->status, WordStatus::kOk);
  EXPECT_EQ(again->before, 3u);
  EXPECT_EQ(word(0), 7u);
  // Neither one of before nor another one under its number.
  EXPECT_EQ(status(*client, first), WordStatus::kForgotten);
  EXPECT_EQ(status(*client, call(*client, on, WordChange::kFetchAndAdd, 5, 2)), WordStatus::kForgotten);
  // Also when its grant has gone meanwhile: it was made.
  ASSERT_EQ(brick->withdraw(on.grant), Status::kOk);
  EXPECT_EQ(status(*client, call(*client, on, WordChange::kFetchAndAdd, 4, 2)), WordStatus::kOk);
  EXPECT_EQ(word(0), 7u);
}

TEST_P(BrickWords, WhatWasRefusedMayBeAskedForAgainAndIsMadeThen) {
  const auto client = greeted();
  const Grant on = grant();
  ChangeWordCall wanted = call(*client, on, WordChange::kFetchAndAdd, 1, 1);
  wanted.grant = on.grant + 1;
  ASSERT_EQ(status(*client, wanted), WordStatus::kUnknownGrant);
  wanted.grant = on.grant;
  EXPECT_EQ(status(*client, wanted), WordStatus::kOk);
  EXPECT_EQ(word(0), 1u);
}

TEST_P(BrickWords, ASessionThatBeganAnewKnowsNothingAndSaysSo) {
  auto client = greeted();
  Grant on = grant();
  ChangeWordCall wanted = call(*client, on, WordChange::kFetchAndAdd, 1, 1);
  ASSERT_EQ(status(*client, wanted), WordStatus::kOk);
  ASSERT_EQ(brick->close_session(), Status::kOk);
  ASSERT_EQ(brick->open_session(), Status::kOk);
  client = greeted();
  EXPECT_NE(client->said().record, wanted.record);
  on = grant();
  wanted.grant = on.grant;
  EXPECT_EQ(status(*client, wanted), WordStatus::kForgotten);
  wanted.slot = kReplaySlots;
  wanted.record = client->said().record;
  EXPECT_EQ(status(*client, wanted), WordStatus::kForgotten);
  wanted.slot = 0;
  wanted.sequence = 0;
  EXPECT_EQ(status(*client, wanted), WordStatus::kForgotten);
  EXPECT_EQ(word(0), 1u);
}

TEST_P(BrickWords, BeforeTheHelloNobodyChangesAny) {
  const Grant on = grant();
  auto client = TestClient::connect(brick->transport(), brick->address(), ticket_of(1));
  ASSERT_TRUE(client);
  (*client)->send(call(**client, on, WordChange::kStore, 1));
  EXPECT_TRUE((*client)->ends());
  EXPECT_EQ(word(0), 0u);
}

TEST_P(BrickWords, ClientsThatAddAtOnceLoseNothing) {
  constexpr int kClients = 4, kTurns = 500;
  std::vector<std::thread> threads;
  for (uint8_t i = 0; i < kClients; ++i) ASSERT_EQ(brick->open_session(20 + i, 20 + i), Status::kOk);
  for (uint8_t i = 0; i < kClients; ++i) {
    const Grant on = grant(0, true, 20 + i);
    threads.emplace_back([this, i, on] {
      const auto client = greeted(20 + i);
      for (int turn = 1; turn <= kTurns; ++turn)
        ASSERT_EQ(status(*client, call(*client, on, WordChange::kFetchAndAdd, 1, turn)), WordStatus::kOk);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(word(0), uint64_t{kClients} * kTurns);
}

TEST_P(BrickWords, WithdrawnWhileItIsChangedAWordStaysAsItIsFromTheAnswerOn) {
  const auto client = greeted();
  const Grant on = grant();
  std::thread adds([&] {
    for (uint64_t turn = 1;; ++turn) {
      if (status(*client, call(*client, on, WordChange::kFetchAndAdd, 1, turn)) != WordStatus::kOk) return;
    }
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  ASSERT_EQ(brick->withdraw(on.grant), Status::kOk);
  std::memset(brick->memory(0), 0, 8);
  adds.join();
  EXPECT_EQ(word(0), 0u);
}

TEST_P(BrickWords, ADurableOneIsFlushedAndSaysWhenThatHasFailed) {
  begin(make_faulty_pool(failures, random));
  auto client = greeted();
  const Grant on = grant();
  ChangeWordCall wanted = call(*client, on, WordChange::kFetchAndAdd, 1, 1);
  wanted.durable = true;
  const auto good = client->ask<ChangeWordReply>(wanted);
  ASSERT_TRUE(good);
  EXPECT_EQ(good->status, WordStatus::kOk);
  failures = 1;
  wanted.sequence = 2;
  const auto bad = client->ask<ChangeWordReply>(wanted);
  ASSERT_TRUE(bad);
  EXPECT_EQ(bad->status, WordStatus::kNotDurable);
  EXPECT_EQ(bad->before, 1u);
  EXPECT_NE(bad->verifier, good->verifier);
  EXPECT_EQ(word(0), 2u) << "it was made";
  // Once lost is lost, whatever a later flush says.
  EXPECT_EQ(status(*client, wanted), WordStatus::kNotDurable);
  wanted.sequence = 3;
  EXPECT_EQ(status(*client, wanted), WordStatus::kOk);
  EXPECT_EQ(word(0), 3u);
}

TEST_P(BrickWords, ARepetitionIsFlushedAnew) {
  begin(make_pool(std::make_unique<HeldPersistence>(gate), random));
  auto client = greeted();
  const Grant on = grant();
  ChangeWordCall wanted = call(*client, on, WordChange::kFetchAndAdd, 1, 1);
  wanted.durable = true;
  gate.shut();
  ASSERT_TRUE(client->send(wanted));
  gate.wait_for_flush();
  EXPECT_EQ(word(0), 1u) << "made, and on its way to the disk";
  client->queue_pair().fail();
  gate.open();
  client = greeted();
  EXPECT_EQ(status(*client, wanted), WordStatus::kOk);
  EXPECT_EQ(word(0), 1u);
}

INSTANTIATE_TEST_SUITE_P(Transports, BrickWords, testing::Values("memory", "iwarp"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace pnfsrdma::brick
