// SPDX-License-Identifier: Apache-2.0
#include "server/brickd/flush_gate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <memory>

#include "server/brickd/flush_turn.h"
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
  Result<> fence() override {
    ++fences;
    return {};
  }
  Durability durability() const override { return Durability::kPower; }
  bool blocks() const override { return true; }

  std::atomic<size_t> fences = 0;
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

  std::future<Result<>> flush(size_t size, FlushGate::Place place, size_t at = 0) {
    const size_t before = gate.waiting();
    auto result = std::async(std::launch::async, [this, size, place, at] {
      const ByteSpan range(memory.get() + at, size);
      return gate.persist_under(std::span(&range, 1), gate.verifier(), place);
    });
    while (gate.waiting() == before) yield_thread();
    return result;
  }

  // Never touched: no memory is behind it.
  const std::unique_ptr<std::byte[]> memory{new std::byte[kLarge + kSmall]};
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
  auto order = *persistence.flushed.lock();
  ASSERT_EQ(order.size(), 6U);
  if (order[2] != kSmall) std::swap(order[2], order[3]);  // side by side
  EXPECT_EQ(order, (std::vector<size_t>{kTurn, kLineOfTable, kSmall, kTurn - kSmall, kTurn, kSmall + 100}))
      << "the large one has what the small one leaves of a turn";
  EXPECT_EQ(gate.waiting(), 0u);
}

TEST_F(FlushGateTest, WhatFailsBetweenItsTurnsFailsTheLargeOne) {
  persistence.failing = kLineOfTable;
  auto table = flush(kLineOfTable, FlushGate::Place::kFront);
  persistence.gate.open();
  EXPECT_FALSE(table.get());
  EXPECT_EQ(large.get().error().number(), ESTALE);
  EXPECT_EQ(unsafe, 1);
}

TEST_F(FlushGateTest, ThoseThatWaitShareATurnAndWhereTheyLieTogetherAFlush) {
  auto one = flush(kSmall, FlushGate::Place::kBack, kSmall);
  auto other = flush(kSmall, FlushGate::Place::kBack, 3 * kSmall);
  auto far = flush(kSmall, FlushGate::Place::kBack, kLarge);
  persistence.gate.open();
  EXPECT_TRUE(one.get());
  EXPECT_TRUE(other.get());
  EXPECT_TRUE(far.get());
  EXPECT_TRUE(large.get());
  const auto order = *persistence.flushed.lock();
  EXPECT_EQ(std::ranges::count(order, 3 * kSmall), 1);
  EXPECT_EQ(std::ranges::count(order, kSmall), 1) << "the far one";
  EXPECT_LT(std::ranges::find(order, kSmall) - order.begin(), 4) << "in the second turn";
}

TEST_F(FlushGateTest, AFailureFailsAllThatSharedIt) {
  persistence.failing = 2 * kSmall;
  auto one = flush(kSmall, FlushGate::Place::kBack, 0);
  auto other = flush(kSmall, FlushGate::Place::kBack, kSmall);
  const Verifier before = gate.verifier();
  persistence.gate.open();
  EXPECT_EQ(one.get().error().number(), EIO);
  EXPECT_EQ(other.get().error().number(), EIO);
  EXPECT_EQ(large.get().error().number(), EIO) << "a piece of it was in that turn";
  EXPECT_EQ(unsafe, 1);
  EXPECT_NE(gate.verifier(), before);
}

TEST_F(FlushGateTest, WhoComesWhileATurnRunsIsInTheNextOne) {
  auto early = flush(kSmall, FlushGate::Place::kBack);
  EXPECT_EQ(early.wait_for(std::chrono::milliseconds(20)), std::future_status::timeout)
      << "the flush that runs began before it";
  persistence.gate.open();
  EXPECT_TRUE(early.get());
  EXPECT_TRUE(large.get());
}

TEST_F(FlushGateTest, ManySmallRangesTakeTurnsToo) {
  std::vector<ByteSpan> ranges;
  for (size_t number = 0; number < 2 * kFlushTurnRanges + 1; ++number)
    ranges.emplace_back(memory.get() + number * (kFlushGapBytes + 2), 1);
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
  EXPECT_LT(std::ranges::find(order, kSmall) - order.begin(), static_cast<ptrdiff_t>(4 + kFlushTurnRanges))
      << "before what was left of the many";
}

// --- one turn

class FlushTurnTest : public testing::Test {
 protected:
  // Where it is cut off; nothing: it fitted.
  size_t left_of(size_t at, size_t size) {
    ByteSpan range(memory.get() + at, size);
    turn.take(range);
    return range.size();
  }
  std::vector<size_t> flushed() const {
    std::vector<size_t> sizes;
    for (const ByteSpan& flush : turn.flushes()) sizes.push_back(flush.size());
    return sizes;
  }

  const std::unique_ptr<std::byte[]> memory{new std::byte[2 * kFlushTurnBytes]};
  FlushTurn turn;
};

TEST_F(FlushTurnTest, RangesWithinTheGapAreOneFlushInWhateverOrderTheyCome) {
  EXPECT_EQ(left_of(2 * kFlushGapBytes + 20, 10), 0U);
  EXPECT_EQ(left_of(0, 10), 0U);
  EXPECT_EQ(flushed(), (std::vector<size_t>{10, 10}));
  EXPECT_EQ(left_of(kFlushGapBytes + 10, 10), 0U);
  EXPECT_EQ(flushed(), (std::vector<size_t>{2 * kFlushGapBytes + 30}));
  EXPECT_EQ(left_of(5, 20), 0U) << "inside";
  EXPECT_EQ(flushed(), (std::vector<size_t>{2 * kFlushGapBytes + 30}));
}

TEST_F(FlushTurnTest, IsFullByBytesAndCutsWhatIsTooLong) {
  EXPECT_EQ(left_of(0, kFlushTurnBytes - 10), 0U);
  EXPECT_FALSE(turn.full());
  EXPECT_EQ(left_of(kFlushTurnBytes, 100), 90U);
  EXPECT_TRUE(turn.full());
  EXPECT_EQ(left_of(0, 7), 7U) << "nothing more";
}

TEST_F(FlushTurnTest, IsFullByRanges) {
  for (size_t number = 0; number < kFlushTurnRanges; ++number) {
    EXPECT_FALSE(turn.full());
    EXPECT_EQ(left_of(number * (kFlushGapBytes + 2), 1), 0U);
  }
  EXPECT_TRUE(turn.full());
}

// --- many threads

// A medium that has of a mapping what was flushed: each word as it was when its flush began.
class MediumPersistence final : public pmem::Persistence {
 public:
  explicit MediumPersistence(std::span<std::atomic<uint64_t>> words) : words_(words), medium_(words.size()) {}
  void copy(std::byte*, ByteSpan) override {}
  void zero(MutableByteSpan) override {}
  Result<> flush(ByteSpan range) override {
    const auto* first = reinterpret_cast<const std::atomic<uint64_t>*>(range.data());
    const auto begin = static_cast<size_t>(first - words_.data());
    std::vector<uint64_t> taken;
    for (size_t word = 0; word < range.size() / sizeof *first; ++word)
      taken.push_back(words_[begin + word].load());
    yield_thread();
    for (size_t word = 0; word < taken.size(); ++word) medium_[begin + word].store(taken[word]);
    return {};
  }
  Result<> fence() override {
    ++fences;
    return {};
  }
  Durability durability() const override { return Durability::kPower; }
  bool blocks() const override { return true; }
  uint64_t on_medium(size_t word) const { return medium_[word].load(); }

  std::atomic<size_t> fences = 0;

 private:
  std::span<std::atomic<uint64_t>> words_;
  std::vector<std::atomic<uint64_t>> medium_;
};

TEST(FlushGateStress, WhoIsAnsweredHasHisBytesOnTheMedium) {
  constexpr size_t kThreads = 8;
  constexpr uint64_t kRounds = 300;
  // Pairs of threads that share flushes because their words lie together.
  constexpr size_t kApart = 3 * kFlushGapBytes / sizeof(uint64_t) / 2;
  std::vector<std::atomic<uint64_t>> words(kThreads / 2 * kApart);
  MediumPersistence persistence(words);
  FlushGate gate(persistence, {}, {}, 0, [](const Error&) {});
  std::vector<std::future<size_t>> threads;
  for (size_t number = 0; number < kThreads; ++number) {
    threads.push_back(std::async(std::launch::async, [&, number] {
      const size_t word = number / 2 * kApart + number % 2;
      const auto place = number == 0 ? FlushGate::Place::kFront : FlushGate::Place::kBack;
      size_t missing = 0;
      for (uint64_t round = 1; round <= kRounds; ++round) {
        words[word].store(round);
        const ByteSpan range(reinterpret_cast<const std::byte*>(&words[word]), sizeof words[word]);
        if (!gate.persist_under(std::span(&range, 1), gate.verifier(), place) ||
            persistence.on_medium(word) != round)
          ++missing;
      }
      return missing;
    }));
  }
  for (auto& thread : threads) EXPECT_EQ(thread.get(), 0U);
  EXPECT_LT(persistence.fences, kThreads * kRounds) << "none were shared";
}

}  // namespace
}  // namespace pnfsrdma::brick
