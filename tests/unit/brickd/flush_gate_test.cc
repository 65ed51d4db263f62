// SPDX-License-Identifier: Apache-2.0
#include "server/brickd/flush_gate.h"

#include <gtest/gtest.h>

#include <future>
#include <memory>

#include "server/brickd/limits.h"
#include "shared/base/sync.h"
#include "tests/unit/brickd/pools.h"

namespace pnfsrdma::brick {
namespace {

// Remembers in which order what was flushed, held at its gate, and fails for one size.
class RememberingPersistence final : public pmem::Persistence {
 public:
  void copy(std::byte*, ByteSpan) override {}
  void zero(MutableByteSpan) override {}
  Result<> flush(ByteSpan range) override {
    gate.pass();
    flushed.lock()->push_back(range.size());
    if (range.size() == failing) return fail(EIO, "msync");
    return {};
  }
  Result<> fence() override { return {}; }
  pmem::Durability durability() const override { return pmem::Durability::kPower; }
  bool blocks() const override { return true; }

  HeldPersistence::Gate gate;
  Guarded<std::vector<size_t>> flushed;
  size_t failing = 0;
};

class FlushGateTest : public testing::Test {
 protected:
  static constexpr size_t kTurn = kFlushTurnBytes;
  static constexpr size_t kLarge = 3 * kTurn + 100;
  static constexpr size_t kSmall = 4096;
  static constexpr size_t kLineOfTable = 64;

  // A large flush is in its first turn.
  void SetUp() override {
    persistence.gate.shut();
    large = std::async(std::launch::async, [this, before = gate.verifier()] {
      const ByteSpan range(memory.get(), kLarge);
      return gate.persist_under(std::span(&range, 1), before);
    });
    persistence.gate.wait_for_flush();
  }
  void TearDown() override { persistence.gate.open(); }

  std::future<Result<>> flush(size_t size, FlushGate::Place place) {
    const size_t before = gate.waiting();
    auto result = std::async(std::launch::async, [this, size, place] {
      const ByteSpan range(memory.get(), size);
      return gate.persist_under(std::span(&range, 1), gate.verifier(), place);
    });
    while (gate.waiting() == before) yield_thread();
    return result;
  }

  // Never touched: no memory is behind it.
  const std::unique_ptr<std::byte[]> memory{new std::byte[kLarge]};
  RememberingPersistence persistence;
  std::atomic<int> unsafe = 0;
  FlushGate gate{persistence, {}, {}, 0, [this](const Error&) { ++unsafe; }};
  std::future<Result<>> large;
};

TEST_F(FlushGateTest, ALargeFlushLetsOthersInBetweenAndTheTableFirst) {
  auto small = flush(kSmall, FlushGate::Place::kBack);
  auto table = flush(kLineOfTable, FlushGate::Place::kFront);
  persistence.gate.open();
  EXPECT_TRUE(large.get());
  EXPECT_TRUE(small.get());
  EXPECT_TRUE(table.get());
  EXPECT_EQ(*persistence.flushed.lock(),
            (std::vector<size_t>{kTurn, kLineOfTable, kSmall, kTurn, kTurn, 100}));
  EXPECT_EQ(gate.waiting(), 0u);
}

TEST_F(FlushGateTest, WhatFailsBetweenItsTurnsFailsTheLargeOne) {
  persistence.failing = kSmall;
  auto small = flush(kSmall, FlushGate::Place::kBack);
  persistence.gate.open();
  EXPECT_FALSE(small.get());
  EXPECT_EQ(large.get().error().number(), ESTALE);
  EXPECT_EQ(unsafe, 1);
}

TEST_F(FlushGateTest, ManySmallRangesTakeTurnsToo) {
  const std::vector<ByteSpan> ranges(2 * kFlushTurnRanges + 1, ByteSpan(memory.get(), 1));
  auto many = std::async(std::launch::async, [&] { return gate.persist(ranges); });
  while (gate.waiting() == 0) yield_thread();
  auto table = flush(kLineOfTable, FlushGate::Place::kFront);
  auto other = flush(kSmall, FlushGate::Place::kBack);
  persistence.gate.open();
  EXPECT_TRUE(many.get());
  EXPECT_TRUE(table.get());
  EXPECT_TRUE(other.get());
  EXPECT_TRUE(large.get());
  const auto order = *persistence.flushed.lock();
  EXPECT_EQ(order.at(1), kLineOfTable);
  EXPECT_EQ(order.at(2 + kFlushTurnRanges), kSmall);
  EXPECT_EQ(order.size(), 4 + ranges.size() + 2);
}

}  // namespace
}  // namespace pnfsrdma::brick
