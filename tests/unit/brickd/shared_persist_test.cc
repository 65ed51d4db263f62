// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "server/brickd/brick.h"
#include "server/brickd/data_operations.h"
#include "server/brickd/pool.h"
#include "shared/base/event_loop.h"
#include "shared/base/log.h"
#include "shared/base/random.h"
#include "tests/unit/brickd/pools.h"

// Persists of the MDS that wait for a disk are flushed together.
namespace pnfsrdma::brick {
namespace {

// Counts what reaches the "disk", which fails while it is told to.
class CountingPersistence final : public pmem::Persistence {
 public:
  struct Disk {
    HeldPersistence::Gate gate;
    std::atomic<int> flushes = 0;
    std::atomic<bool> failing = false;
  };
  explicit CountingPersistence(Disk& disk) : disk_(disk) {}
  void copy(std::byte* target, ByteSpan source) override { inner_.copy(target, source); }
  void zero(MutableByteSpan target) override { inner_.zero(target); }
  Result<> flush(ByteSpan) override {
    ++disk_.flushes;
    disk_.gate.pass();
    if (disk_.failing) return fail(EIO, "msync");
    return {};
  }
  Result<> fence() override { return {}; }
  Durability durability() const override { return Durability::kPower; }
  bool blocks() const override { return true; }

 private:
  pmem::UnflushedPersistence inner_{Durability::kPower};
  Disk& disk_;
};

class SharedPersist : public testing::Test {
 protected:
  void SetUp() override {
    set_log_level(LogLevel::kOff);
    EXPECT_EQ(answered([&](auto done) {
                brick.control().claim({1, "test"}, [done](const auto& result) { done(result->status); });
              }),
              Status::kOk);
    EXPECT_EQ(answered([&](auto done) {
                brick.control().alloc({1, 0, 2}, [done](const auto& result) { done(result->status); });
              }),
              Status::kOk);
  }
  void TearDown() override {
    disk.gate.open();
    set_log_level(LogLevel::kInfo);
  }

  template <typename Ask>
  Status answered(Ask ask) {
    std::optional<Status> answer;
    ask([&](Status status) { answer = status; });
    wait_for([&] { return answer.has_value(); });
    return answer.value_or(Status::kIo);
  }
  template <typename Condition>
  void wait_for(Condition condition) {
    for (int turn = 0; turn < 1000 && !condition(); ++turn) loop.run_once(Milliseconds(10));
    ASSERT_TRUE(condition());
  }
  // Answers are noted in the order they come.
  void persist(const std::string& name, uint64_t offset, uint64_t length = 4096, uint64_t epoch = 1) {
    brick.control().persist({epoch, {{{offset, length}}}},
                            [this, name](const auto& result) { note(name, result->status); });
  }
  void zero(const std::string& name, uint64_t offset, uint64_t length = 4096) {
    brick.control().zero({1, {{{offset, length}}}},
                         [this, name](const auto& result) { note(name, result->status); });
  }
  void note(const std::string& name, Status status) {
    order.push_back(name);
    if (status != Status::kOk) failed.push_back(name);
  }
  // The disk is busy with a persist called "first".
  void keep_busy() {
    disk.gate.shut();
    disk.flushes = 0;
    persist("first", 0);
    wait_for([&] { return disk.flushes == 1; });
  }
  void finish(size_t answers) {
    disk.gate.open();
    wait_for([&] { return order.size() == answers; });
  }

  SystemRandom random;
  SystemClock clock;
  EventLoop loop{clock};
  CountingPersistence::Disk disk;
  Brick brick{loop, make_pool(std::make_unique<CountingPersistence>(disk), random), BootId{}, random, {}};
  std::vector<std::string> order;
  std::vector<std::string> failed;
};

TEST_F(SharedPersist, ThoseThatWaitAreOneFlush) {
  keep_busy();
  for (uint64_t file = 0; file < 20; ++file) persist("file " + std::to_string(file), file * 65536);
  finish(21);
  EXPECT_EQ(disk.flushes, 2);
  EXPECT_TRUE(failed.empty());
  EXPECT_EQ(order.front(), "first");
  EXPECT_EQ(order.back(), "file 19");
}

TEST_F(SharedPersist, AFlushThatFailsFailsAllThatSharedIt) {
  keep_busy();
  persist("one", 0);
  persist("other", kBlockSize);
  disk.gate.open();
  wait_for([&] { return order.size() == 3; });
  EXPECT_TRUE(failed.empty());
  order.clear();
  keep_busy();
  persist("one", 0);
  persist("other", 65536);
  disk.failing = true;
  finish(3);
  EXPECT_EQ(failed, (std::vector<std::string>{"first", "one", "other"}));
}

// An MDS may count on the order of its calls.
TEST_F(SharedPersist, NoneOvertakesWhatWasAskedForEarlier) {
  keep_busy();
  persist("one", 0);
  zero("zero", 0);
  persist("other", 0);
  persist("last", 65536);
  finish(5);
  EXPECT_EQ(order, (std::vector<std::string>{"first", "one", "zero", "other", "last"}));
  EXPECT_EQ(disk.flushes, 4) << "other and last share one";
}

TEST_F(SharedPersist, ASmallOneDoesNotWaitForLargeOnesThatComeLater) {
  constexpr uint64_t kLarge = 2 * kBlockSize;
  keep_busy();
  persist("small", 0);
  for (uint64_t sum = 0; sum <= kFlushTurnBytes; sum += kLarge) persist("large", 0, kLarge);
  finish(2 + kFlushTurnBytes / kLarge + 1);
  EXPECT_EQ(disk.flushes, 3) << "first, a turn's worth, and what did not fit";
}

TEST(FencedPersist, IsRefusedAloneAndFlushesNothing) {
  set_log_level(LogLevel::kOff);
  CountingPersistence::Disk disk;
  SystemRandom random;
  SystemClock clock;
  EventLoop loop(clock);
  const auto pool = make_pool(std::make_unique<CountingPersistence>(disk), random);
  ASSERT_TRUE(pool->table().alloc({1, 0, 2}));
  FlushGate gate(pool->persistence(), {}, {}, 0, [](const Error&) {});
  DataOperations operations(loop, *pool, gate);
  std::vector<std::pair<std::string, Status>> answers;
  const auto persist = [&](const std::string& name, uint64_t epoch, uint64_t offset) {
    operations.persist({epoch, {{{offset, 4096}}}},
                       [&answers, name](Status status) { answers.emplace_back(name, status); });
  };
  disk.gate.shut();
  disk.flushes = 0;
  persist("first", 1, 0);
  disk.gate.wait_for_flush();
  persist("old", 1, 0);
  persist("new", 2, kBlockSize);
  bool fenced = false;
  operations.fence_epoch(2, [&] { fenced = true; });
  EXPECT_EQ(operations.waiting(), 3U);
  disk.gate.open();
  for (int turn = 0; turn < 1000 && !fenced; ++turn) loop.run_once(Milliseconds(10));
  EXPECT_EQ(answers, (std::vector<std::pair<std::string, Status>>{
                         {"first", Status::kOk}, {"old", Status::kStaleEpoch}, {"new", Status::kOk}}));
  EXPECT_EQ(disk.flushes, 2);
  EXPECT_EQ(operations.waiting(), 0U);
  set_log_level(LogLevel::kInfo);
}

}  // namespace
}  // namespace pnfsrdma::brick
