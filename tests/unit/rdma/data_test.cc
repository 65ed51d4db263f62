// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/rdma/transport_fixture.h"

namespace pnfsrdma::rdma::testing {
namespace {

class Data : public TransportTest {};
PNFSRDMA_EVERY_TRANSPORT(Data);

constexpr uint32_t kSizes[] = {0,
                               1,
                               2,
                               3,
                               4,
                               5,
                               63,
                               511,
                               4095,
                               4096,
                               8191,
                               8192,
                               8193,
                               12345,
                               65471,
                               65472,
                               65473,
                               65536,
                               130944,
                               130945,
                               262144,
                               999999,
                               (1 << 20) - 1,
                               1 << 20,
                               (1 << 20) + 1};

TEST_P(Data, WritesArriveWhereTheyWereAimedAndNowhereElse) {
  auto client = connect();
  Bytes target(2 << 20);
  auto region = expose(*client, target);
  for (uint32_t size : kSizes) {
    std::memset(target.data(), 0xEE, target.size());
    Bytes data = pattern(size, size);
    std::ranges::copy(data, client->memory.begin() + 7);
    ASSERT_EQ(client->write(7, size, region->remote().slice(13, size)), Outcome::kSuccess) << size;
    EXPECT_TRUE(same(ByteSpan(target).subspan(13, size), data)) << size;
    EXPECT_EQ(target[12], std::byte{0xEE});
    EXPECT_EQ(target[13 + size], std::byte{0xEE});
  }
}

TEST_P(Data, ReadsBringWhatIsThere) {
  auto client = connect();
  Bytes target = pattern(2 << 20, 1);
  auto region = expose(*client, target);
  for (uint32_t size : kSizes) {
    std::memset(client->memory.data(), 0xEE, client->memory.size());
    ASSERT_EQ(client->read(5, size, region->remote().slice(17, size)), Outcome::kSuccess) << size;
    EXPECT_TRUE(same(ByteSpan(client->memory).subspan(5, size), ByteSpan(target).subspan(17, size))) << size;
    EXPECT_EQ(client->memory[4], std::byte{0xEE});
    EXPECT_EQ(client->memory[5 + size], std::byte{0xEE});
  }
}

TEST_P(Data, MessagesArriveWholeAndInOrder) {
  auto client = connect();
  Bytes inbox(4 * 65536);
  auto region = expose(*client, inbox, Access::kLocalWrite);
  constexpr uint32_t kLengths[] = {0, 1, 4096, 65536};
  for (uint32_t i = 0; i < 4; ++i) {
    ASSERT_TRUE(client->served->queue_pair->post_receive(100 + i, region->slice(i * 65536, 65536)));
  }
  client->memory = pattern(client->memory.size(), 3);
  client->region = *transport->register_region(client->domain, client->memory, Access::kLocalWrite);
  for (uint32_t i = 0; i < 4; ++i) {
    LocalSlice message = client->slice(i * 1000, kLengths[i]);
    ASSERT_TRUE(client->queue_pair->post_send(i, {&message, 1}));
  }
  client->queue_pair->submit();
  for (uint32_t i = 0; i < 4; ++i) {
    Completion sent = client->next_completion();
    EXPECT_EQ(sent.work_id, i);
    EXPECT_EQ(sent.outcome, Outcome::kSuccess);
    Completion received = client->served->next_completion();
    EXPECT_EQ(received.work_id, 100 + i);
    EXPECT_EQ(received.opcode, Opcode::kReceive);
    ASSERT_EQ(received.length, kLengths[i]);
    EXPECT_TRUE(same(ByteSpan(inbox).subspan(i * 65536, kLengths[i]),
                     ByteSpan(client->memory).subspan(i * 1000, kLengths[i])));
  }
}

TEST_P(Data, TheTargetAnswersWithMessagesOfItsOwn) {
  auto client = connect();
  Bytes memory = pattern(8192, 4);
  auto region = expose(*client, memory, Access::kLocalWrite);
  for (int round = 0; round < 10; ++round) {
    ASSERT_TRUE(client->served->queue_pair->post_receive(1, region->slice(0, 4096)));
    ASSERT_TRUE(client->queue_pair->post_receive(2, client->slice(4096, 4096)));
    LocalSlice question = client->slice(0, 100);
    ASSERT_TRUE(client->queue_pair->post_send(3, {&question, 1}));
    client->queue_pair->submit();
    EXPECT_EQ(client->next_completion().opcode, Opcode::kSend);
    EXPECT_EQ(client->served->next_completion().length, 100u);
    LocalSlice answer = region->slice(4096, 200);
    ASSERT_TRUE(client->served->queue_pair->post_send(4, {&answer, 1}));
    client->served->queue_pair->submit();
    Completion received = client->next_completion();
    EXPECT_EQ(received.work_id, 2u);
    EXPECT_EQ(received.length, 200u);
    EXPECT_EQ(client->served->next_completion().work_id, 4u);
    EXPECT_TRUE(same(ByteSpan(memory).subspan(4096, 200), ByteSpan(client->memory).subspan(4096, 200)));
  }
}

// More than the queue holds at once: who posts nothing but lazy messages gets their completions all the same.
TEST_P(Data, LazyMessagesArriveAndMakeRoomForMore) {
  auto client = connect();
  Bytes inbox(8);
  auto region = expose(*client, inbox, Access::kLocalWrite);
  const uint32_t depth = client->queue_pair->limits().send_depth;
  uint64_t completed = 0;
  for (uint32_t number = 0; number < 3 * depth; ++number) {
    ASSERT_TRUE(client->served->queue_pair->post_receive(number, region->slice(0, 8)));
    std::memcpy(client->memory.data(), &number, sizeof(number));
    LocalSlice message = client->slice(0, 8);
    ASSERT_TRUE(client->queue_pair->post_send_lazily(number, {&message, 1}));
    client->queue_pair->submit();
    EXPECT_EQ(client->served->next_completion().work_id, number);
    EXPECT_EQ(std::memcmp(inbox.data(), &number, sizeof(number)), 0);
    for (Completion completion; client->queue_pair->poll({&completion, 1}) == 1; ++completed) {
      EXPECT_EQ(completion.work_id, completed);
      EXPECT_EQ(completion.outcome, Outcome::kSuccess);
    }
  }
  EXPECT_GT(completed, uint64_t{2} * depth);
}

TEST_P(Data, ALazyMessageCompletesWithALaterOne) {
  auto client = connect();
  Bytes inbox(8);
  auto region = expose(*client, inbox, Access::kLocalWrite);
  for (uint64_t i = 0; i < 2; ++i) {
    ASSERT_TRUE(client->served->queue_pair->post_receive(i, region->slice(0, 8)));
  }
  LocalSlice message = client->slice(0, 8);
  ASSERT_TRUE(client->queue_pair->post_send_lazily(1, {&message, 1}));
  ASSERT_TRUE(client->queue_pair->post_send(2, {&message, 1}));
  client->queue_pair->submit();
  for (uint64_t i = 1; i <= 2; ++i) {
    const Completion completion = client->next_completion();
    EXPECT_EQ(completion.work_id, i);
    EXPECT_EQ(completion.outcome, Outcome::kSuccess);
  }
}

TEST_P(Data, ALazyMessageDoesNotHoldUpTheEnd) {
  auto client = connect();
  Bytes inbox(8);
  auto region = expose(*client, inbox, Access::kLocalWrite);
  ASSERT_TRUE(client->served->queue_pair->post_receive(1, region->slice(0, 8)));
  LocalSlice message = client->slice(0, 8);
  ASSERT_TRUE(client->queue_pair->post_send_lazily(7, {&message, 1}));
  client->queue_pair->submit();
  EXPECT_EQ(client->served->next_completion().outcome, Outcome::kSuccess);
  const SteadyTime begin = std::chrono::steady_clock::now();
  client->queue_pair->fail();
  while (client->queue_pair->connected()) client->queue_pair->wait(soon(10ms));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 1s);
  EXPECT_EQ(client->next_completion().work_id, 7u);
}

TEST_P(Data, OneWriteGathersManySlices) {
  auto client = connect();
  client->memory = pattern(client->memory.size(), 5);
  client->region = *transport->register_region(client->domain, client->memory, Access::kLocalWrite);
  Bytes target(2 << 20), expected;
  auto region = expose(*client, target);
  std::vector<LocalSlice> slices;
  for (uint32_t i = 0; i < kGatherMax; ++i) {
    uint32_t length = i * 6000 + (i % 2);
    slices.push_back(client->slice(i * 100000, length));
    auto first = client->memory.begin() + i * 100000;
    expected.insert(expected.end(), first, first + length);
  }
  ASSERT_TRUE(client->queue_pair->post_write(9, slices, region->remote().slice(1, expected.size())));
  client->queue_pair->submit();
  Completion completion = client->next_completion();
  EXPECT_EQ(completion.outcome, Outcome::kSuccess);
  EXPECT_EQ(completion.length, expected.size());
  EXPECT_TRUE(same(ByteSpan(target).subspan(1, expected.size()), expected));
}

TEST_P(Data, ReadsSeeTheWritesPostedBeforeThem) {
  auto client = connect();
  Bytes target(1 << 20);
  auto region = expose(*client, target);
  for (uint32_t round = 0; round < 50; ++round) {
    uint32_t size = 1 + round * 4099 % 300000;
    Bytes data = pattern(size, round);
    std::ranges::copy(data, client->memory.begin());
    LocalSlice source = client->slice(0, size);
    ASSERT_TRUE(client->queue_pair->post_write(1, {&source, 1}, region->remote().slice(0, size)));
    ASSERT_TRUE(
        client->queue_pair->post_read(2, client->slice(1 << 20, size), region->remote().slice(0, size)));
    client->queue_pair->submit();
    EXPECT_EQ(client->next_completion().work_id, 1u);
    EXPECT_EQ(client->next_completion().work_id, 2u);
    ASSERT_TRUE(same(ByteSpan(client->memory).subspan(1 << 20, size), data));
  }
}

TEST_P(Data, ManyOperationsInFlightBothWays) {
  auto client = connect(16 << 20);
  Bytes target = pattern(16 << 20, 6);
  Bytes original = target;
  auto region = expose(*client, target);
  Bytes data = pattern(8 << 20, 7);
  std::ranges::copy(data, client->memory.begin());
  // Upper half of the target is read into the upper half here while the lower half is written.
  constexpr uint32_t kSize = 200000;
  uint32_t posted = 0, completed = 0;
  while (completed < 80) {
    while (posted < 80 && posted - completed < 20) {
      uint32_t slot = posted / 2;
      LocalSlice local = client->slice(slot * kSize + (posted % 2) * (8 << 20), kSize);
      RemoteSlice remote = region->remote().slice(slot * kSize + (posted % 2) * (8 << 20), kSize);
      ASSERT_TRUE(posted % 2 == 0 ? client->queue_pair->post_write(posted, {&local, 1}, remote)
                                  : client->queue_pair->post_read(posted, local, remote));
      ++posted;
    }
    client->queue_pair->submit();
    Completion completion = client->next_completion();
    ASSERT_EQ(completion.work_id, completed++);
    ASSERT_EQ(completion.outcome, Outcome::kSuccess);
  }
  EXPECT_TRUE(same(ByteSpan(target).first(40 * kSize), ByteSpan(data).first(40 * kSize)));
  EXPECT_TRUE(same(ByteSpan(client->memory).subspan(8 << 20, 40 * kSize),
                   ByteSpan(original).subspan(8 << 20, 40 * kSize)));
}

// Both ends write and read 1 MiB pieces of each other at once: the sockets fill up in both directions.
TEST_P(Data, BothSidesStreamAtOnceWithoutDeadlock) {
  auto client = connect(8 << 20);
  Bytes target(8 << 20);
  auto region = expose(*client, target, Access::kRemoteRead | Access::kRemoteWrite | Access::kLocalWrite);
  auto mine = *transport->register_region(client->domain, client->memory,
                                          Access::kRemoteRead | Access::kRemoteWrite | Access::kLocalWrite);
  ASSERT_EQ(client->write(0, 1, region->remote().slice(0, 1)), Outcome::kSuccess);
  constexpr uint32_t kPiece = 1 << 20;
  for (uint32_t i = 0; i < 24; ++i) {
    LocalSlice here = mine->slice((i % 4) * kPiece, kPiece), there = region->slice((i % 4) * kPiece, kPiece);
    ASSERT_TRUE(
        client->queue_pair->post_write(i, {&here, 1}, region->remote().slice((4 + i % 4) * kPiece, kPiece)));
    ASSERT_TRUE(client->served->queue_pair->post_write(i, {&there, 1},
                                                       mine->remote().slice((4 + i % 4) * kPiece, kPiece)));
  }
  std::thread other([&] { client->served->queue_pair->submit(); });
  client->queue_pair->submit();
  for (uint32_t i = 0; i < 24; ++i) EXPECT_EQ(client->next_completion().outcome, Outcome::kSuccess);
  std::atomic<bool> done = false;
  std::thread server([&] {  // the client must go on serving the target's WRITEs
    for (uint32_t i = 0; i < 24; ++i) EXPECT_EQ(client->served->next_completion().outcome, Outcome::kSuccess);
    done = true;
  });
  Completion none;
  while (!done) {
    client->queue_pair->wait(soon(10ms));
    client->queue_pair->poll({&none, 1});
  }
  server.join();
  other.join();
}

}  // namespace
}  // namespace pnfsrdma::rdma::testing
