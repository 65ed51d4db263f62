// SPDX-License-Identifier: Apache-2.0
#include <poll.h>

#include "tests/unit/rdma/transport_fixture.h"

namespace pnfsrdma::rdma::testing {
namespace {

class Completions : public TransportTest {};
PNFSRDMA_EVERY_TRANSPORT(Completions);

TEST_P(Completions, PrivateDataTravelsBothWays) {
  auto client = connect();
  EXPECT_EQ(client->reply, (Bytes{std::byte{7}, std::byte{8}}));
}

TEST_P(Completions, ComeInTheOrderOfPosting) {
  FlushableMemory memory(65536, !software());
  if (!memory.there()) GTEST_SKIP() << "native flush needs persistent memory: set PNFSRDMA_TEST_DAX";
  auto client = connect();
  if (!client->queue_pair->limits().native_flush) GTEST_SKIP() << "the device has no native flush";
  RecordingFlusher flusher;
  auto region = expose(*client, memory.bytes(),
                       Access::kRemoteRead | Access::kRemoteWrite | Access::kRemoteFlush, &flusher);
  Bytes inbox(4096);
  auto receives = expose(*client, inbox, Access::kLocalWrite);
  ASSERT_TRUE(client->served->queue_pair->post_receive(1, receives->slice(0, 4096)));
  LocalSlice local = client->slice(0, 4096);
  RemoteSlice remote = region->remote();
  ASSERT_TRUE(client->queue_pair->post_write(0, {&local, 1}, remote));
  ASSERT_TRUE(client->queue_pair->post_send(1, {&local, 1}));
  ASSERT_TRUE(client->queue_pair->post_read(2, client->slice(4096, 4096), remote));
  ASSERT_TRUE(client->queue_pair->post_flush(3, remote, FlushLevel::kPersistent));
  ASSERT_TRUE(client->queue_pair->post_write(4, {&local, 1}, remote));
  client->queue_pair->submit();
  constexpr Opcode kExpected[] = {Opcode::kWrite, Opcode::kSend, Opcode::kRead, Opcode::kFlush,
                                  Opcode::kWrite};
  for (uint64_t i = 0; i < 5; ++i) {
    Completion completion = client->next_completion();
    EXPECT_EQ(completion.work_id, i);
    EXPECT_EQ(completion.opcode, kExpected[i]);
    EXPECT_EQ(completion.outcome, Outcome::kSuccess);
  }
  if (!software()) return;  // the device flushes by itself
  EXPECT_EQ(flusher.calls, 1u);
  EXPECT_EQ(flusher.bytes, 65536u);
}

TEST_P(Completions, AWriteIsAtTheTargetWhenItCompletes) {
  auto client = connect();
  Bytes memory(1 << 20);
  auto region = expose(*client, memory);
  for (int i = 1; i < 50; ++i) {
    std::ranges::fill(client->memory, static_cast<std::byte>(i));
    ASSERT_EQ(client->write(0, 1 << 20, region->remote()), Outcome::kSuccess);
    EXPECT_EQ(memory.front(), static_cast<std::byte>(i));
    EXPECT_EQ(memory.back(), static_cast<std::byte>(i));
  }
}

TEST_P(Completions, CountersCountWhatMoved) {
  FlushableMemory memory(65536, !software());
  if (!memory.there()) GTEST_SKIP() << "native flush needs persistent memory: set PNFSRDMA_TEST_DAX";
  auto client = connect();
  if (!client->queue_pair->limits().native_flush) GTEST_SKIP() << "the device has no native flush";
  RecordingFlusher flusher;
  auto region = expose(*client, memory.bytes(),
                       Access::kRemoteRead | Access::kRemoteWrite | Access::kRemoteFlush, &flusher);
  EXPECT_EQ(client->write(0, 1000, region->remote()), Outcome::kSuccess);
  EXPECT_EQ(client->read(0, 3000, region->remote()), Outcome::kSuccess);
  ASSERT_TRUE(client->queue_pair->post_flush(1, region->remote(), FlushLevel::kPersistent));
  client->queue_pair->submit();
  EXPECT_EQ(client->next_completion().outcome, Outcome::kSuccess);
  TransportCounters counters = client->queue_pair->counters();
  EXPECT_EQ(counters.write_bytes, 1000u);
  EXPECT_EQ(counters.write_operations, 1u);
  EXPECT_EQ(counters.read_bytes, 3000u);
  EXPECT_EQ(counters.read_operations, 1u);
  EXPECT_EQ(counters.flush_operations, 1u);
  if (!software()) return;  // a device tells its responder nothing
  counters = client->served->queue_pair->counters();
  EXPECT_EQ(counters.responder_write_bytes, 1000u);
  EXPECT_EQ(counters.responder_read_bytes, 3000u);
  EXPECT_EQ(counters.responder_flush_operations, 1u);
}

TEST_P(Completions, TheFdIsReadableWhenThereIsWork) {
  auto client = connect();
  Bytes memory(1 << 20);
  auto region = expose(*client, memory);
  for (int i = 0; i < 10; ++i) {
    LocalSlice local = client->slice(0, 1 << 20);
    ASSERT_TRUE(client->queue_pair->post_write(1, {&local, 1}, region->remote()));
    client->queue_pair->submit();
    Completion completion;
    size_t count = client->queue_pair->poll({&completion, 1});
    while (count == 0) {
      pollfd entry{client->queue_pair->fd(), POLLIN, 0};
      ASSERT_EQ(::poll(&entry, 1, 10000), 1);
      count = client->queue_pair->poll({&completion, 1});
    }
    EXPECT_EQ(completion.outcome, Outcome::kSuccess);
  }
}

TEST_P(Completions, WaitGivesUpAtItsDeadline) {
  auto client = connect();
  for (Milliseconds longest : {0ms, 3ms, 40ms}) {
    SteadyTime start = std::chrono::steady_clock::now();
    EXPECT_FALSE(client->queue_pair->wait(start + longest));
    EXPECT_GE(std::chrono::steady_clock::now(), start + longest);
    EXPECT_LT(std::chrono::steady_clock::now(), start + longest + 2s);
  }
}

TEST_P(Completions, AThreadCanPostWhileAnotherWaits) {
  auto client = connect();
  Bytes memory(65536);
  auto region = expose(*client, memory);
  std::atomic<int> completed = 0;
  std::thread waiter([&] {
    Completion batch[4];
    while (completed < 200) {
      client->queue_pair->wait(soon(100ms));
      completed += static_cast<int>(client->queue_pair->poll(batch));
    }
  });
  LocalSlice local = client->slice(0, 4096);
  for (int posted = 0; posted < 200;) {
    if (!client->queue_pair->post_write(1, {&local, 1}, region->remote())) continue;
    ++posted;
    client->queue_pair->submit();
  }
  waiter.join();
}

TEST_P(Completions, FailFlushesEverythingAndWakesTheWaiter) {
  auto client = connect();
  ASSERT_TRUE(client->queue_pair->post_receive(5, client->slice(0, 100)));
  std::thread failer([&] {
    std::this_thread::sleep_for(20ms);
    client->queue_pair->fail();
    client->queue_pair->fail();
  });
  EXPECT_TRUE(client->queue_pair->wait(soon()));
  failer.join();
  EXPECT_FALSE(client->queue_pair->connected());
  Completion completion;
  ASSERT_EQ(client->queue_pair->poll({&completion, 1}), 1u);
  EXPECT_EQ(completion.work_id, 5u);
  EXPECT_EQ(completion.outcome, Outcome::kFlushed);
  EXPECT_EQ(client->queue_pair->poll({&completion, 1}), 0u);
  LocalSlice local = client->slice(0, 1);
  EXPECT_EQ(client->queue_pair->post_send(1, {&local, 1}).error().number(), ENOTCONN);
  EXPECT_TRUE(client->served->ended_before(soon()));
}

// The peer may speak the moment it is connected; the accepting side has its receives posted by then.
TEST_P(Completions, TheFirstMessageFindsAReceiveHoweverSlowTheAcceptingSideIs) {
  auto domain = transport->make_protection_domain();
  Bytes inbox(100);
  auto region = *transport->register_region(domain, inbox, Access::kLocalWrite);
  Guarded<std::unique_ptr<QueuePair>> accepted_pair;
  std::atomic<bool> received = false, over = false;
  auto slow = *transport->listen(here("0"), [&](auto request) {
    auto made = request->accept(domain, {}, {});
    if (made) *accepted_pair.lock() = *std::move(made);
  });
  std::thread server([&] {
    while (!over && *accepted_pair.lock() == nullptr) std::this_thread::sleep_for(1ms);
    if (over) return;
    QueuePair& accepting = **accepted_pair.lock();
    std::this_thread::sleep_for(600ms);
    EXPECT_TRUE(accepting.post_receive(7, region->slice(0, 100)));
    Completion completion;
    while (!over && accepting.poll({&completion, 1}) == 0) accepting.wait(soon(100ms));
    received = completion.work_id == 7 && completion.outcome == Outcome::kSuccess;
    while (!over) accepting.wait(soon(10ms));
  });
  auto own = transport->make_protection_domain();
  Bytes message(100, std::byte{9});
  auto source = *transport->register_region(own, message, Access::kLocalWrite);
  auto connected = transport->connect(slow->address(), own, {.deadline = soon()});
  EXPECT_TRUE(connected) << connected.error().to_string();
  if (connected) {
    LocalSlice slice = source->slice(0, 100);
    EXPECT_TRUE(connected->queue_pair->post_send(1, {&slice, 1}));
    connected->queue_pair->submit();
    Completion sent;
    while (connected->queue_pair->poll({&sent, 1}) == 0 && connected->queue_pair->wait(soon())) continue;
    EXPECT_EQ(sent.work_id, 1u);
    EXPECT_EQ(sent.outcome, Outcome::kSuccess);
    for (SteadyTime until = soon(); !received && std::chrono::steady_clock::now() < until;) {
      std::this_thread::sleep_for(1ms);
    }
  }
  over = true;
  server.join();
  EXPECT_TRUE(received);
  EXPECT_EQ(inbox, message);
}

TEST_P(Completions, ASlowFlushHoldsUpNobodyElse) {
  if (!software()) GTEST_SKIP() << "the device flushes by itself";
  auto slow = connect(), other = connect();
  Bytes memory(65536);
  RecordingFlusher flusher;
  flusher.delay = 300ms;
  auto slow_region = expose(*slow, memory, Access::kRemoteWrite | Access::kRemoteFlush, &flusher);
  auto other_region = expose(*other, memory);
  if (GetParam() == Kind::kMemory) GTEST_SKIP() << "runs in the initiator's thread";
  ASSERT_TRUE(slow->queue_pair->post_flush(1, slow_region->remote(), FlushLevel::kPersistent));
  slow->queue_pair->submit();
  SteadyTime start = std::chrono::steady_clock::now();
  EXPECT_EQ(other->write(0, 100, other_region->remote()), Outcome::kSuccess);
  EXPECT_LT(std::chrono::steady_clock::now() - start, 250ms);
  EXPECT_EQ(slow->next_completion().outcome, Outcome::kSuccess);
  EXPECT_GE(std::chrono::steady_clock::now() - start, 250ms);
}

}  // namespace
}  // namespace pnfsrdma::rdma::testing
