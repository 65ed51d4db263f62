// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/rdma/transport_fixture.h"

namespace pnfsrdma::rdma::testing {
namespace {

uint64_t load(const std::byte* at) {
  // A load needs no more than const; std::atomic_ref of C++23 does not know that yet.
  auto* value = reinterpret_cast<uint64_t*>(const_cast<std::byte*>(at));
  return std::atomic_ref<uint64_t>(*value).load(std::memory_order_acquire);
}

// A number twice: halves that differ show a value in pieces.
constexpr uint64_t twice(uint64_t number) {
  return number << 32 | number;
}

class AtomicWrite : public TransportTest {
 protected:
  void SetUp() override {
    TransportTest::SetUp();
    if (IsSkipped()) return;
    client = connect();
    if (!client->queue_pair->limits().atomic_write) GTEST_SKIP() << "the device has no atomic write";
  }
  void TearDown() override {
    client.reset();
    TransportTest::TearDown();
  }
  void post(uint64_t work_id, uint64_t value, RemoteSlice target) {
    ASSERT_TRUE(client->queue_pair->post_atomic_write(work_id, value, target));
  }
  Outcome store(uint64_t value, RemoteSlice target) {
    post(1, value, target);
    client->queue_pair->submit();
    return client->next_completion().outcome;
  }
  // Refused, and the connection with it; what stood behind it never runs.
  void expect_refused(RemoteSlice target) {
    post(1, ~uint64_t{0}, target);
    post(2, ~uint64_t{0}, target);
    client->queue_pair->submit();
    EXPECT_EQ(client->next_completion().outcome, Outcome::kRemoteAccess);
    EXPECT_EQ(client->next_completion().outcome, Outcome::kFlushed);
    EXPECT_TRUE(client->served->ended_before(soon()));
    client = connect();
  }

  std::unique_ptr<Client> client;
};
PNFSRDMA_EVERY_TRANSPORT(AtomicWrite);

TEST_P(AtomicWrite, StoresEightBytesAndNoMore) {
  Bytes memory(64, std::byte{0xEE});
  auto region = expose(*client, memory);
  const uint64_t value = 0x0123456789ABCDEF;
  post(7, value, region->remote().slice(16, 8));
  client->queue_pair->submit();
  const Completion completion = client->next_completion();
  EXPECT_EQ(completion.work_id, 7u);
  EXPECT_EQ(completion.opcode, Opcode::kAtomicWrite);
  EXPECT_EQ(completion.outcome, Outcome::kSuccess);
  EXPECT_EQ(completion.length, kAtomicWriteSize);
  EXPECT_EQ(std::memcmp(memory.data() + 16, &value, sizeof(value)), 0);
  EXPECT_TRUE(filled_with(ByteSpan(memory).first(16), std::byte{0xEE}));
  EXPECT_TRUE(filled_with(ByteSpan(memory).subspan(24), std::byte{0xEE}));
}

TEST_P(AtomicWrite, IsCounted) {
  Bytes memory(64);
  auto region = expose(*client, memory);
  EXPECT_EQ(store(1, region->remote().slice(0, 8)), Outcome::kSuccess);
  const TransportCounters counters = client->queue_pair->counters();
  EXPECT_EQ(counters.atomic_write_operations, 1u);
  EXPECT_EQ(counters.write_operations, 0u);
  if (!software()) return;  // a device tells its responder nothing
  EXPECT_EQ(client->served->queue_pair->counters().responder_write_bytes, kAtomicWriteSize);
}

TEST_P(AtomicWrite, IsSeenWholeByAConcurrentReader) {
  constexpr uint64_t kRounds = 2000;
  Bytes memory(64);
  auto region = expose(*client, memory);
  std::atomic<bool> over = false;
  std::thread reader([&] {
    for (uint64_t seen = 0; !over;) {
      const uint64_t value = load(memory.data() + 8);
      ASSERT_EQ(value >> 32, value & 0xFFFFFFFF);
      ASSERT_GE(value, seen) << "an older value came back";
      seen = value;
      std::this_thread::yield();
    }
  });
  uint64_t posted = 0;
  for (uint64_t completed = 0; completed < kRounds; ++completed) {
    for (; posted < kRounds && posted - completed < 16; ++posted) {
      post(posted, twice(posted), region->remote().slice(8, 8));
    }
    client->queue_pair->submit();
    ASSERT_EQ(client->next_completion().outcome, Outcome::kSuccess);
  }
  over = true;
  reader.join();
  EXPECT_EQ(load(memory.data() + 8), twice(kRounds - 1));
}

// What it is for: who sees the value sees everything that was written before it.
TEST_P(AtomicWrite, IsSeenBehindTheWritesPostedBeforeIt) {
  constexpr uint32_t kRecord = 12000, kRecords = 100;
  Bytes memory(16 + kRecord * kRecords);
  auto region = expose(*client, memory, Access::kRemoteWrite);
  std::thread reader([&] {
    const SteadyTime deadline = soon();
    for (uint64_t seen = 0; seen < kRecords && std::chrono::steady_clock::now() < deadline;) {
      const uint64_t committed = load(memory.data());
      for (; seen < committed; ++seen) {
        ASSERT_TRUE(filled_with(ByteSpan(memory).subspan(16 + seen * kRecord, kRecord),
                                static_cast<std::byte>(seen + 1)));
      }
      std::this_thread::yield();
    }
    EXPECT_EQ(load(memory.data()), kRecords);
  });
  uint32_t posted = 0;
  for (uint32_t completed = 0; completed < 2 * kRecords; ++completed) {
    for (; posted < kRecords && 2 * posted - completed < 16; ++posted) {
      LocalSlice record = client->slice(posted * kRecord, kRecord);
      std::memset(record.address, static_cast<int>(posted + 1), kRecord);
      EXPECT_TRUE(client->queue_pair->post_write(1, {&record, 1},
                                                 region->remote().slice(16 + posted * kRecord, kRecord)));
      post(2, posted + 1, region->remote().slice(0, 8));
    }
    client->queue_pair->submit();
    EXPECT_EQ(client->next_completion().outcome, Outcome::kSuccess);
  }
  reader.join();
}

// Flushes slowly, and remembers what the value was at the end of each.
class WatchingFlusher final : public Flusher {
 public:
  explicit WatchingFlusher(const std::byte* value) : value_(value) {}
  Result<> flush(MutableByteSpan) override {
    std::this_thread::sleep_for(20ms);
    seen.lock()->push_back(load(value_));
    if (failing) return pnfsrdma::fail(EIO, "the medium is broken");
    return {};
  }
  Guarded<std::vector<uint64_t>> seen;
  std::atomic<bool> failing = false;

 private:
  const std::byte* const value_;
};

TEST_P(AtomicWrite, WaitsForTheFlushPostedBeforeIt) {
  FlushableMemory memory(65536, !software());
  if (!memory.there()) GTEST_SKIP() << "native flush needs persistent memory: set PNFSRDMA_TEST_DAX";
  if (!client->queue_pair->limits().native_flush) GTEST_SKIP() << "the device has no native flush";
  std::memset(memory.bytes().data(), 0, memory.bytes().size());
  WatchingFlusher flusher(memory.bytes().data());
  auto region = expose(*client, memory.bytes(), Access::kRemoteWrite | Access::kRemoteFlush, &flusher);
  std::memset(client->memory.data(), 0x5A, 4096);
  LocalSlice record = client->slice(0, 4096);
  ASSERT_TRUE(client->queue_pair->post_write(0, {&record, 1}, region->remote().slice(4096, 4096)));
  ASSERT_TRUE(client->queue_pair->post_flush(1, region->remote().slice(4096, 4096), FlushLevel::kPersistent));
  post(2, 1, region->remote().slice(0, 8));
  ASSERT_TRUE(client->queue_pair->post_flush(3, region->remote().slice(0, 8), FlushLevel::kPersistent));
  client->queue_pair->submit();
  constexpr Opcode kExpected[] = {Opcode::kWrite, Opcode::kFlush, Opcode::kAtomicWrite, Opcode::kFlush};
  for (const Opcode expected : kExpected) {
    const Completion completion = client->next_completion();
    EXPECT_EQ(completion.opcode, expected);
    EXPECT_EQ(completion.outcome, Outcome::kSuccess);
  }
  EXPECT_EQ(load(memory.bytes().data()), 1u);
  if (!software()) return;  // the device flushes by itself
  EXPECT_EQ(*flusher.seen.lock(), (std::vector<uint64_t>{0, 1}));
  EXPECT_TRUE(filled_with(memory.bytes().subspan(4096, 4096), std::byte{0x5A}));
}

TEST_P(AtomicWrite, BehindAFailedFlushDoesNotHappen) {
  if (!software()) GTEST_SKIP() << "the device flushes by itself";
  Bytes memory(64);
  WatchingFlusher flusher(memory.data());
  flusher.failing = true;
  auto region = expose(*client, memory, Access::kRemoteWrite | Access::kRemoteFlush, &flusher);
  ASSERT_TRUE(client->queue_pair->post_flush(1, region->remote(), FlushLevel::kPersistent));
  post(2, 1, region->remote().slice(0, 8));
  client->queue_pair->submit();
  EXPECT_EQ(client->next_completion().outcome, Outcome::kRemoteOperation);
  EXPECT_EQ(client->next_completion().outcome, Outcome::kFlushed);
  EXPECT_TRUE(client->served->ended_before(soon()));
  EXPECT_EQ(*flusher.seen.lock(), std::vector<uint64_t>{0});
  EXPECT_EQ(load(memory.data()), 0u);
}

TEST_P(AtomicWrite, OfAnotherSizeOrPlaceIsRefusedAtOnce) {
  auto& queue_pair = *client->queue_pair;
  for (RemoteSlice bad : {RemoteSlice{4096, 7, 1}, RemoteSlice{4096, 16, 1}, RemoteSlice{4096, 0, 1},
                          RemoteSlice{4097, 8, 1}, RemoteSlice{4100, 8, 1}}) {
    EXPECT_EQ(queue_pair.post_atomic_write(1, 1, bad).error().number(), EINVAL) << bad.address;
  }
  EXPECT_TRUE(queue_pair.connected());
}

TEST_P(AtomicWrite, TakesItsPlaceInTheQueue) {
  Bytes memory(64);
  client = connect(4096, {.send_depth = 2, .atomic_write = true});
  auto region = expose(*client, memory);
  const RemoteSlice target = region->remote().slice(0, 8);
  post(1, 1, target);
  post(2, 2, target);
  EXPECT_EQ(client->queue_pair->post_atomic_write(3, 3, target).error().number(), ENOBUFS);
  client->queue_pair->submit();
  for (uint64_t i = 1; i <= 2; ++i) EXPECT_EQ(client->next_completion().work_id, i);
  EXPECT_EQ(load(memory.data()), 2u);
}

TEST_P(AtomicWrite, NeedsTheRightToWrite) {
  Bytes memory(4096);
  for (Access access : {Access::kRemoteRead, Access::kLocalWrite}) {
    auto region = expose(*client, memory, access);
    expect_refused(region->remote().slice(0, 8));
  }
  EXPECT_TRUE(filled_with(memory, std::byte{0}));
}

TEST_P(AtomicWrite, EndsWithItsRegion) {
  Bytes memory(4096);
  auto region = expose(*client, memory);
  const RemoteSlice target = region->remote().slice(0, 8);
  EXPECT_EQ(store(0, target), Outcome::kSuccess);
  region.reset();
  expect_refused(target);
  EXPECT_TRUE(filled_with(memory, std::byte{0}));
}

TEST_P(AtomicWrite, EndsAtTheBoundsOfItsRegion) {
  Bytes memory(4096);
  for (const size_t size : {size_t{2048}, size_t{2052}}) {
    auto region = expose(*client, MutableByteSpan(memory).first(size));
    expect_refused({region->remote().address + 2048, 8, region->remote().key});
  }
  EXPECT_TRUE(filled_with(memory, std::byte{0}));
}

TEST_P(AtomicWrite, ThroughAnothersHandleIsRefused) {
  Bytes memory(4096);
  auto owner = connect();
  auto region = expose(*owner, memory);
  expect_refused(region->remote().slice(0, 8));
  EXPECT_TRUE(filled_with(memory, std::byte{0}));
}

TEST_P(AtomicWrite, NeedsBothSides) {
  accept_limits.atomic_write = false;
  client = connect();
  EXPECT_FALSE(client->queue_pair->limits().atomic_write);
  EXPECT_EQ(client->queue_pair->post_atomic_write(1, 1, {0, 8, 1}).error().number(), EOPNOTSUPP);
  accept_limits.atomic_write = true;
  client = connect(4096, {.atomic_write = false});
  EXPECT_FALSE(client->queue_pair->limits().atomic_write);
  EXPECT_FALSE(client->served->queue_pair->limits().atomic_write);
}

// One does not need the other: a device may have either.
TEST_P(AtomicWrite, NeedsNoNativeFlush) {
  Bytes memory(64);
  client = connect(4096, {.native_flush = false, .atomic_write = true});
  EXPECT_FALSE(client->queue_pair->limits().native_flush);
  auto region = expose(*client, memory);
  EXPECT_EQ(store(5, region->remote().slice(0, 8)), Outcome::kSuccess);
  EXPECT_EQ(load(memory.data()), 5u);
}

}  // namespace
}  // namespace pnfsrdma::rdma::testing
