// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "shared/rdma/software_domain.h"
#include "tests/unit/rdma/transport_fixture.h"

namespace pnfsrdma::rdma::testing {
namespace {

// What one client may not do to memory that is not, not yet or no longer its own, and what others notice of
// it: nothing.
class Isolation : public TransportTest {
 protected:
  void SetUp() override {
    TransportTest::SetUp();
    if (IsSkipped()) return;
    device = pattern(8 << 20, 42);
    original = device;
    bystander = connect();
    bystander_region = expose(*bystander, bystander_memory);
  }
  void TearDown() override {
    if (bystander == nullptr) return TransportTest::TearDown();
    // Others go on undisturbed, and nothing of the device has changed.
    EXPECT_EQ(bystander->write(0, 4096, bystander_region->remote()), Outcome::kSuccess);
    EXPECT_TRUE(same(device, original));
    bystander_region.reset();
    bystander.reset();
    TransportTest::TearDown();
  }

  // The access is refused, the connection ends on both sides, what stood behind it is flushed.
  void expect_refused(Client& client, Opcode opcode, uint32_t count, RemoteSlice remote) {
    std::memset(client.memory.data(), 0xAB, client.memory.size());
    LocalSlice local = client.slice(0, count);
    ASSERT_TRUE(opcode == Opcode::kRead ? client.queue_pair->post_read(1, local, remote)
                                        : client.queue_pair->post_write(1, {&local, 1}, remote));
    ASSERT_TRUE(client.queue_pair->post_read(2, client.slice(0, 0), {}));
    client.queue_pair->submit();
    Completion refused = client.next_completion();
    EXPECT_EQ(refused.work_id, 1u);
    EXPECT_EQ(refused.outcome, Outcome::kRemoteAccess) << to_string(refused.outcome);
    Completion behind = client.next_completion();
    EXPECT_EQ(behind.work_id, 2u);
    EXPECT_EQ(behind.outcome, Outcome::kFlushed) << to_string(behind.outcome);
    EXPECT_FALSE(client.queue_pair->connected());
    EXPECT_TRUE(client.served->ended_before(soon()));
    EXPECT_TRUE(filled_with(client.memory, std::byte{0xAB}));
  }
  MutableByteSpan part(size_t offset, size_t count) { return MutableByteSpan(device).subspan(offset, count); }

  Bytes device, original;
  Bytes bystander_memory = Bytes(65536);
  std::unique_ptr<Client> bystander;
  std::unique_ptr<Region> bystander_region;
};
PNFSRDMA_EVERY_TRANSPORT(Isolation);

TEST_P(Isolation, AHandleOfAnotherClientIsWorthNothing) {
  for (Opcode opcode : {Opcode::kRead, Opcode::kWrite}) {
    auto owner = connect(), thief = connect();
    auto region = expose(*owner, part(1 << 20, 1 << 20));
    expect_refused(*thief, opcode, 4096, region->remote());
    EXPECT_EQ(owner->read(0, 4096, region->remote()), Outcome::kSuccess);
  }
}

TEST_P(Isolation, AHandleEndsWithItsRegion) {
  for (Opcode opcode : {Opcode::kRead, Opcode::kWrite}) {
    auto client = connect();
    auto region = expose(*client, part(0, 1 << 20));
    RemoteSlice remote = region->remote();
    EXPECT_EQ(client->read(0, 4096, remote), Outcome::kSuccess);
    region.reset();
    expect_refused(*client, opcode, 4096, remote);
  }
}

TEST_P(Isolation, RevocationAloneDisturbsNoConnection) {
  auto client = connect();
  auto first = expose(*client, part(0, 1 << 20)), second = expose(*client, part(1 << 20, 1 << 20));
  first.reset();
  EXPECT_EQ(client->read(0, 1 << 20, second->remote()), Outcome::kSuccess);
}

TEST_P(Isolation, AHandleDoesNotWorkOnALaterConnection) {
  for (Opcode opcode : {Opcode::kRead, Opcode::kWrite}) {
    auto client = connect();
    auto region = expose(*client, part(0, 1 << 20));
    client->queue_pair->fail();
    auto again = connect();
    expect_refused(*again, opcode, 4096, region->remote());
  }
}

TEST_P(Isolation, AHandleEndsAtItsBounds) {
  constexpr size_t kStart = 2 << 20, kSize = 1 << 20;
  struct Range {
    int64_t offset;
    uint32_t count;
  };
  constexpr Range kOutside[] = {{-1, 2},    {-4096, 4096},  {kSize - 1, 2},
                                {kSize, 1}, {0, kSize + 1}, {1, kSize}};
  for (Opcode opcode : {Opcode::kRead, Opcode::kWrite}) {
    for (Range range : kOutside) {
      auto client = connect();
      auto region = expose(*client, part(kStart, kSize));
      RemoteSlice remote = region->remote();
      remote.address += static_cast<uint64_t>(range.offset);
      remote.length = range.count;
      expect_refused(*client, opcode, range.count, remote);
      // A long WRITE is refused segment by segment: bytes inside its own grant may have arrived, none
      // outside.
      std::memcpy(device.data() + kStart, original.data() + kStart, kSize);
    }
  }
}

TEST_P(Isolation, AHandleGivesNoMoreThanItsRights) {
  {
    auto client = connect();
    auto region = expose(*client, part(0, 4096), Access::kRemoteRead);
    expect_refused(*client, Opcode::kWrite, 4096, region->remote());
  }
  {
    auto client = connect();
    auto region = expose(*client, part(0, 4096), Access::kRemoteWrite);
    expect_refused(*client, Opcode::kRead, 4096, region->remote());
  }
  {
    auto client = connect();
    auto region = expose(*client, part(0, 4096), Access::kLocalWrite);
    expect_refused(*client, Opcode::kRead, 4096, region->remote());
  }
}

TEST_P(Isolation, FlushNeedsItsRight) {
  auto client = connect();
  if (!client->queue_pair->limits().native_flush) GTEST_SKIP() << "the device has no native flush";
  auto region = expose(*client, part(0, 4096));
  ASSERT_TRUE(client->queue_pair->post_flush(1, region->remote(), FlushLevel::kPersistent));
  client->queue_pair->submit();
  EXPECT_EQ(client->next_completion().outcome, Outcome::kRemoteAccess);
}

TEST_P(Isolation, AFailedFlushIsTheTargetsFault) {
  if (!software()) GTEST_SKIP() << "the device flushes by itself";
  auto client = connect();
  RecordingFlusher flusher;
  flusher.failing = true;
  auto region = expose(*client, part(0, 4096), Access::kRemoteRead | Access::kRemoteFlush, &flusher);
  ASSERT_TRUE(client->queue_pair->post_flush(1, region->remote(), FlushLevel::kPersistent));
  client->queue_pair->submit();
  EXPECT_EQ(client->next_completion().outcome, Outcome::kRemoteOperation);
  EXPECT_TRUE(client->served->ended_before(soon()));
}

// A large flush of a slow disk: whoever takes the region away does not wait for all of it.
TEST_P(Isolation, ARegionDiesBetweenThePiecesOfAFlush) {
  if (!software()) GTEST_SKIP() << "the device flushes by itself";
  class DyingFlusher final : public Flusher {
   public:
    Result<> flush(MutableByteSpan) override {
      if (++calls == 1) {
        destroyer = std::thread([this] { region.reset(); });
        while (!registration->dead()) std::this_thread::yield();
      }
      return {};
    }
    std::unique_ptr<Region> region;
    std::shared_ptr<Registration> registration;
    std::thread destroyer;
    std::atomic<int> calls = 0;
  } flusher;
  constexpr size_t kSize = 3 * kFlushPieceBytes;
  const std::unique_ptr<std::byte[]> untouched(new std::byte[kSize]);
  auto client = connect();
  flusher.region = expose(*client, {untouched.get(), kSize}, Access::kRemoteFlush, &flusher);
  const RemoteSlice remote = flusher.region->remote();
  flusher.registration = std::dynamic_pointer_cast<SoftwareDomain>(client->served->domain)->find(remote.key);
  ASSERT_TRUE(client->queue_pair->post_flush(1, remote, FlushLevel::kPersistent));
  client->queue_pair->submit();
  EXPECT_EQ(client->next_completion().outcome, Outcome::kRemoteAccess);
  flusher.destroyer.join();
  EXPECT_EQ(flusher.calls, 1);
}

TEST_P(Isolation, AClientThatPostsNoReceivesOnlyHurtsItself) {
  auto client = connect();
  auto region = expose(*client, part(0, 4096));
  EXPECT_EQ(client->read(0, 10, region->remote()), Outcome::kSuccess);
  LocalSlice message = region->slice(0, 100);
  ASSERT_TRUE(client->served->queue_pair->post_send(1, {&message, 1}));
  client->served->queue_pair->submit();
  Completion none;
  while (client->queue_pair->connected()) {
    ASSERT_TRUE(client->queue_pair->wait(soon()));
    client->queue_pair->poll({&none, 1});
  }
  EXPECT_TRUE(client->served->ended_before(soon()));
}

TEST_P(Isolation, AMessageLongerThanTheReceiveEndsTheConnection) {
  auto client = connect();
  Bytes inbox(200, std::byte{0});
  auto region = expose(*client, inbox, Access::kLocalWrite);
  ASSERT_TRUE(client->served->queue_pair->post_receive(9, region->slice(0, 100)));
  std::ranges::fill(client->memory, std::byte{0xFF});
  LocalSlice message = client->slice(0, 101);
  ASSERT_TRUE(client->queue_pair->post_send(1, {&message, 1}));
  client->queue_pair->submit();
  EXPECT_EQ(client->served->next_completion().outcome, Outcome::kLengthError);
  EXPECT_TRUE(client->served->ended_before(soon()));
  EXPECT_EQ(inbox[100], std::byte{0});
}

TEST_P(Isolation, ForeignLocalMemoryIsNotSent) {
  auto client = connect(), other = connect();
  auto region = expose(*client, part(0, 4096));
  LocalSlice good = client->slice(0, 0), foreign = other->slice(0, 4096), beyond = client->slice(0, 4096);
  beyond.address += client->memory.size() - 4095;
  for (LocalSlice bad : {foreign, beyond}) {
    auto victim = connect();
    auto target = expose(*victim, part(0, 4096));
    ASSERT_TRUE(victim->queue_pair->post_read(1, victim->slice(0, 16), target->remote()));
    ASSERT_TRUE(victim->queue_pair->post_write(2, {&bad, 1}, target->remote()));
    ASSERT_TRUE(victim->queue_pair->post_write(3, {&good, 1}, target->remote()));
    victim->queue_pair->submit();
    const Outcome before = victim->next_completion().outcome, refused = victim->next_completion().outcome;
    EXPECT_EQ(victim->next_completion().outcome, Outcome::kFlushed);
    // Soft-RoCE gives the whole queue up when it meets the bad slice, what stood before it included.
    if (!software() && refused == Outcome::kFlushed) continue;
    EXPECT_EQ(before, Outcome::kSuccess);
    EXPECT_EQ(refused, Outcome::kLocalProtection);
  }
}

// The one that matters: 1 MiB WRITEs stream in while the region goes. From the moment its destructor has
// returned not one byte changes.
TEST_P(Isolation, RevocationCutsOffStreamingWrites) {
  for (int round = 0; round < 5; ++round) {
    auto client = connect(4 << 20);
    std::memset(client->memory.data(), 0x5C, client->memory.size());
    auto memory = part(4 << 20, 4 << 20);
    auto region = expose(*client, memory);
    RemoteSlice remote = region->remote();
    std::atomic<bool> streaming = false;
    Outcome last = Outcome::kSuccess;
    std::thread stream([&] {
      uint64_t posted = 0, completed = 0;
      while (last == Outcome::kSuccess) {
        while (posted - completed < 8) {
          size_t offset = posted % 4 * (1 << 20);
          LocalSlice local = client->slice(offset, 1 << 20);
          if (!client->queue_pair->post_write(posted++, {&local, 1}, remote.slice(offset, 1 << 20))) break;
        }
        client->queue_pair->submit();
        last = client->next_completion().outcome;
        if (++completed == 4) streaming = true;
      }
    });
    while (!streaming) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(round));
    const SteadyTime decided = std::chrono::steady_clock::now();
    region.reset();
    const auto took = std::chrono::steady_clock::now() - decided;
    RecordProperty("revoked_us_" + std::to_string(round),
                   std::to_string(std::chrono::duration_cast<std::chrono::microseconds>(took).count()));
    std::memset(memory.data(), 0x77, memory.size());  // ours again
    stream.join();
    EXPECT_EQ(last, Outcome::kRemoteAccess) << to_string(last);
    EXPECT_TRUE(client->served->ended_before(soon()));
    EXPECT_TRUE(filled_with(memory, std::byte{0x77}));
    std::memcpy(memory.data(), original.data() + (4 << 20), 4 << 20);
  }
}

TEST_P(Isolation, RevocationCutsOffStreamingReads) {
  auto client = connect(4 << 20);
  auto region = expose(*client, part(0, 4 << 20));
  RemoteSlice remote = region->remote();
  std::atomic<bool> streaming = false;
  std::thread stream([&] {
    Outcome last = Outcome::kSuccess;
    while (last == Outcome::kSuccess) {
      for (int i = 0; i < 4; ++i) {
        if (!client->queue_pair->post_read(1, client->slice(i << 20, 1 << 20),
                                           remote.slice(i << 20, 1 << 20)))
          break;
      }
      client->queue_pair->submit();
      for (int i = 0; i < 4 && last == Outcome::kSuccess; ++i) last = client->next_completion().outcome;
      streaming = true;
    }
  });
  while (!streaming) std::this_thread::yield();
  region.reset();
  stream.join();
  EXPECT_TRUE(client->served->ended_before(soon()));
}

TEST_P(Isolation, ConcurrentClientsKeepToThemselves) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([this] {
      auto thief = connect_quietly();
      ASSERT_NE(thief, nullptr);
      for (int k = 0; k < 20; ++k) {
        LocalSlice nothing{nullptr, 0, 0};
        ASSERT_TRUE(thief->post_write(1, {&nothing, 1}, {0, 0, 1}));
        thief->submit();
        Completion completion;
        while (thief->poll({&completion, 1}) == 0) thief->wait(soon());
        EXPECT_EQ(completion.outcome, Outcome::kSuccess);
      }
    });
  }
  for (int k = 0; k < 50; ++k) {
    EXPECT_EQ(bystander->write(0, 65536, bystander_region->remote()), Outcome::kSuccess);
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace pnfsrdma::rdma::testing
