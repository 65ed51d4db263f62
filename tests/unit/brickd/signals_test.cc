// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "server/brickd/limits.h"
#include "tests/unit/brickd/pools.h"
#include "tests/unit/brickd/test_brick.h"
#include "tests/unit/brickd/test_client.h"

namespace pnfsrdma::brick {
namespace {

constexpr uint64_t kOther = 8;

// What one client has made durable and another one watches, over each transport.
class BrickSignals : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { begin(); }
  void begin(std::unique_ptr<Pool> pool = nullptr) {
    brick.emplace(GetParam(), BrickOptions{.lease = Milliseconds(60000)}, std::move(pool));
    ASSERT_EQ(brick->claim().status, Status::kOk);
    ASSERT_EQ(brick->alloc(0, 2), Status::kOk);
    ASSERT_EQ(brick->open_session(), Status::kOk);
    ASSERT_EQ(brick->open_session(kOther, 2), Status::kOk);
    writable = grant(true, kClient);
    readable = grant(false, kOther);
    writer = greeted(1);
    watcher = greeted(2);
  }
  std::unique_ptr<TestClient> greeted(uint8_t ticket) {
    auto client = TestClient::connect(brick->transport(), brick->address(), ticket_of(ticket));
    EXPECT_TRUE(client) << client.error().to_string();
    const auto hello = (*client)->hello();
    EXPECT_TRUE(hello);
    verifier = hello->verifier;
    return std::move(*client);
  }
  Grant grant(bool for_writing, uint64_t client, uint64_t logical = 0) {
    const ExposeResult exposed = brick->expose(logical, kBlock, for_writing, client);
    EXPECT_EQ(exposed.status, Status::kOk);
    return exposed.grants.at(0);
  }
  WatchStatus watch(TestClient& client, const Grant& on, uint64_t number, uint64_t offset, uint64_t length) {
    const auto reply = client.ask<WatchReply>(
        WatchCall{.id = 1, .watch = number, .grant = on.grant, .offset = offset, .length = length});
    EXPECT_TRUE(reply);
    return reply ? reply->status : WatchStatus::kLimit;
  }
  SignalCall call(uint64_t value, uint64_t offset = 0, uint64_t length = 8) {
    SignalCall wanted{.id = value, .verifier = verifier, .value = value};
    wanted.ranges.push_back({writable.grant, offset, length});
    return wanted;
  }
  SignalStatus signal(const SignalCall& wanted) {
    const auto reply = writer->ask<SignalReply>(wanted);
    EXPECT_TRUE(reply);
    return reply ? reply->status : SignalStatus::kIo;
  }
  std::vector<Event> events(TestClient& client) {
    const auto reply = client.ask<EventsReply>(EventsCall{.id = 5});
    EXPECT_TRUE(reply);
    return reply ? std::vector<Event>(reply->events.begin(), reply->events.end()) : std::vector<Event>();
  }

  // The brick's pool uses these until it ends, so they end after it.
  SystemRandom random;
  std::atomic<int> failures = 0;
  HeldPersistence::Gate gate;
  std::optional<TestBrick> brick;
  Grant writable, readable;
  std::unique_ptr<TestClient> writer, watcher;
  xdr::FixedOpaque<8> verifier{};
};

TEST_P(BrickSignals, AWatcherHearsWhatPartOfItsRangeWasSignalled) {
  EXPECT_NE(watcher->said().understands & kUnderstandsEvents, 0u);
  ASSERT_EQ(watch(*watcher, readable, 70, 100, 100), WatchStatus::kOk);
  EXPECT_EQ(signal(call(1, 0, 100)), SignalStatus::kOk);    // before it
  EXPECT_EQ(signal(call(2, 200, 100)), SignalStatus::kOk);  // behind it
  EXPECT_EQ(signal(call(3, 0, kBlock)), SignalStatus::kOk);
  EXPECT_EQ(signal(call(4, 150, 8)), SignalStatus::kOk);
  EXPECT_EQ(signal(call(5, 199, 8)), SignalStatus::kOk);
  const auto told = events(*watcher);
  ASSERT_EQ(told.size(), 3u);
  for (size_t i = 0; i < told.size(); ++i) {
    EXPECT_EQ(told[i].watch, 70u);
    EXPECT_EQ(told[i].kind, EventKind::kSignal);
    EXPECT_EQ(told[i].sequence, i + 1);
    EXPECT_EQ(told[i].value, i + 3);
  }
  EXPECT_EQ(told[0].offset, 0u);
  EXPECT_EQ(told[0].length, 100u);
  EXPECT_EQ(told[1].offset, 50u);
  EXPECT_EQ(told[1].length, 8u);
  EXPECT_EQ(told[2].offset, 99u);
  EXPECT_EQ(told[2].length, 1u);
}

TEST_P(BrickSignals, ACallForEventsWaitsAndOtherMessagesDoNotWaitForIt) {
  ASSERT_EQ(watch(*watcher, readable, 1, 0, kBlock), WatchStatus::kOk);
  ASSERT_TRUE(watcher->send(EventsCall{.id = 9}));
  for (uint64_t i = 0; i < 20; ++i) ASSERT_TRUE(watcher->persist(PersistCall{.id = i}));
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    EXPECT_EQ(signal(call(11)), SignalStatus::kOk);
  });
  const auto reply = watcher->receive();
  later.join();
  ASSERT_TRUE(reply);
  const auto& told = std::get<EventsReply>(*reply);
  EXPECT_EQ(told.id, 9u);
  ASSERT_EQ(told.events.size(), 1u);
  EXPECT_EQ(told.events[0].value, 11u);
}

TEST_P(BrickSignals, WhoSignalsHearsOfItTooWhenItWatches) {
  ASSERT_EQ(watch(*writer, writable, 1, 0, 64), WatchStatus::kOk);
  ASSERT_EQ(watch(*writer, writable, 2, 32, 64), WatchStatus::kOk);
  EXPECT_EQ(signal(call(1, 0, 40)), SignalStatus::kOk);
  EXPECT_EQ(events(*writer).size(), 2u);
}

TEST_P(BrickSignals, NobodyWatchesOrSignalsWithoutAGrant) {
  EXPECT_EQ(watch(*watcher, writable, 1, 0, 8), WatchStatus::kUnknownGrant) << "another client's";
  EXPECT_EQ(watch(*watcher, readable, 1, kBlock - 4, 8), WatchStatus::kInvalid);
  EXPECT_EQ(watch(*watcher, readable, 1, kBlock + 1, UINT64_MAX - 8), WatchStatus::kInvalid);
  ASSERT_EQ(watch(*watcher, readable, 1, 0, kBlock), WatchStatus::kOk);
  EXPECT_EQ(watch(*watcher, readable, 1, 0, kBlock), WatchStatus::kInvalid) << "that number is taken";

  SignalCall by_reader{.id = 1, .verifier = verifier, .value = 1, .ranges = {{{readable.grant, 0, 8}}}};
  EXPECT_EQ(watcher->ask<SignalReply>(by_reader)->status, SignalStatus::kUnknownGrant);
  SignalCall wrong = call(2);
  wrong.ranges.push_back({readable.grant, 0, 8});
  EXPECT_EQ(signal(wrong), SignalStatus::kUnknownGrant);
  EXPECT_EQ(signal(call(3, kBlock - 4, 8)), SignalStatus::kBounds);
  EXPECT_EQ(signal(call(4, UINT64_MAX - 4, 8)), SignalStatus::kBounds);
  SignalCall old = call(5);
  old.verifier[0] ^= std::byte{1};
  EXPECT_EQ(signal(old), SignalStatus::kVerifier);
  EXPECT_EQ(signal(call(6)), SignalStatus::kOk);
  const auto told = events(*watcher);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].value, 6u);
}

TEST_P(BrickSignals, AWatchEndsWithItsGrantAndTheClientHearsOfIt) {
  const Grant second = grant(false, kOther);
  ASSERT_EQ(watch(*watcher, readable, 1, 0, 8), WatchStatus::kOk);
  ASSERT_EQ(watch(*watcher, readable, 2, 0, 8), WatchStatus::kOk);
  ASSERT_EQ(watch(*watcher, second, 3, 0, 8), WatchStatus::kOk);
  ASSERT_EQ(brick->withdraw(readable.grant, kOther), Status::kOk);
  EXPECT_EQ(signal(call(1)), SignalStatus::kOk);
  const auto told = events(*watcher);
  ASSERT_EQ(told.size(), 3u);
  EXPECT_EQ(told[0].kind, EventKind::kEnd);
  EXPECT_EQ(told[1].kind, EventKind::kEnd);
  EXPECT_EQ(told[0].watch + told[1].watch, 3u);
  EXPECT_EQ(told[2].watch, 3u);
  EXPECT_EQ(told[2].kind, EventKind::kSignal);
}

TEST_P(BrickSignals, AWatchThatWasGivenUpIsToldNothing) {
  ASSERT_EQ(watch(*watcher, readable, 1, 0, 8), WatchStatus::kOk);
  ASSERT_EQ(watch(*watcher, readable, 2, 0, 8), WatchStatus::kOk);
  EXPECT_EQ(watch(*watcher, readable, 1, 0, 0), WatchStatus::kOk);
  EXPECT_EQ(watch(*watcher, readable, 99, 0, 0), WatchStatus::kOk) << "there is none: nothing to do";
  EXPECT_EQ(signal(call(1)), SignalStatus::kOk);
  const auto told = events(*watcher);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].watch, 2u);
}

TEST_P(BrickSignals, WhatAClientDoesNotTakeBecomesOneGapAndNobodyWaits) {
  ASSERT_EQ(watch(*watcher, readable, 1, 0, 8), WatchStatus::kOk);
  ASSERT_EQ(watch(*watcher, readable, 2, 16, 8), WatchStatus::kOk);
  for (uint64_t i = 1; i <= kUnsentPerWatch + 50; ++i) ASSERT_EQ(signal(call(i)), SignalStatus::kOk);
  ASSERT_EQ(signal(call(7777, 16)), SignalStatus::kOk);
  const auto told = events(*watcher);
  ASSERT_EQ(told.size(), kUnsentPerWatch + 2);
  for (size_t i = 0; i < kUnsentPerWatch; ++i) ASSERT_EQ(told[i].value, i + 1);
  EXPECT_EQ(told[kUnsentPerWatch].kind, EventKind::kGap);
  EXPECT_EQ(told[kUnsentPerWatch].sequence, kUnsentPerWatch + 1);
  EXPECT_EQ(told.back().value, 7777u) << "the other watch has lost nothing";
  // Behind the gap there is room again.
  ASSERT_EQ(signal(call(8888)), SignalStatus::kOk);
  const auto then = events(*watcher);
  ASSERT_EQ(then.size(), 1u);
  EXPECT_EQ(then[0].value, 8888u);
  EXPECT_EQ(then[0].sequence, kUnsentPerWatch + 2);
}

TEST_P(BrickSignals, NoClientHasMoreThanItsShare) {
  for (uint64_t i = 0; i < kWatchesPerConnection; ++i)
    ASSERT_EQ(watch(*watcher, readable, i, 0, 8), WatchStatus::kOk);
  EXPECT_EQ(watch(*watcher, readable, kWatchesPerConnection, 0, 8), WatchStatus::kLimit);
  for (uint64_t i = 1; i <= 10; ++i) ASSERT_EQ(signal(call(i)), SignalStatus::kOk);
  size_t signals = 0, gaps = 0;
  while (gaps < kWatchesPerConnection) {
    for (const Event& event : events(*watcher)) ++(event.kind == EventKind::kGap ? gaps : signals);
  }
  EXPECT_EQ(signals, kUnsentPerConnection);
  // Ends that it does not take count, too.
  WatchStatus status = WatchStatus::kOk;
  for (uint64_t turn = 0; turn < 100 && status == WatchStatus::kOk; ++turn) {
    const Grant again = grant(false, kOther);
    for (uint64_t i = 0; i < kWatchesPerConnection; ++i)
      ASSERT_EQ(watch(*watcher, readable, i, 0, 0), WatchStatus::kOk);
    for (uint64_t i = 0; i < kWatchesPerConnection && status == WatchStatus::kOk; ++i)
      status = watch(*watcher, again, i, 0, 8);
    ASSERT_EQ(brick->withdraw(again.grant, kOther), Status::kOk);
  }
  EXPECT_EQ(status, WatchStatus::kLimit);
}

TEST_P(BrickSignals, NobodyIsToldBeforeTheFlushNorBehindOneThatFailed) {
  begin(make_pool(std::make_unique<HeldPersistence>(gate), random));
  ASSERT_EQ(watch(*watcher, readable, 1, 0, 8), WatchStatus::kOk);
  gate.shut();
  ASSERT_TRUE(writer->send(call(1)));
  gate.wait_for_flush();
  ASSERT_TRUE(watcher->send(EventsCall{.id = 9}));
  // On this connection answers come in order: the event would have been in front of this one.
  const auto first = watcher->ask<WatchReply>(WatchCall{.id = 2, .watch = 1000});
  ASSERT_TRUE(first);
  gate.open();
  const auto told = watcher->receive();
  ASSERT_TRUE(told);
  EXPECT_EQ(std::get<EventsReply>(*told).events.at(0).value, 1u);

  watcher.reset();
  writer.reset();
  begin(make_faulty_pool(failures, random));
  ASSERT_EQ(watch(*watcher, readable, 1, 0, 8), WatchStatus::kOk);
  failures = 1;
  EXPECT_EQ(signal(call(1)), SignalStatus::kVerifier) << "the flush has failed, so the verifier is another";
  EXPECT_EQ(signal(call(2)), SignalStatus::kVerifier);
  verifier = watcher->hello()->verifier;
  EXPECT_EQ(signal(call(3)), SignalStatus::kOk);
  const auto then = events(*watcher);
  ASSERT_EQ(then.size(), 1u);
  EXPECT_EQ(then[0].value, 3u);
}

TEST_P(BrickSignals, WhoseGrantIsWithdrawnDuringTheFlushTellsNobody) {
  begin(make_pool(std::make_unique<HeldPersistence>(gate), random));
  ASSERT_EQ(watch(*watcher, readable, 1, 0, 8), WatchStatus::kOk);
  gate.shut();
  ASSERT_TRUE(writer->send(call(1)));
  gate.wait_for_flush();
  std::thread withdraws([&] { EXPECT_EQ(brick->withdraw(writable.grant), Status::kOk); });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  gate.open();
  withdraws.join();
  const auto reply = writer->receive();
  ASSERT_TRUE(reply);
  EXPECT_EQ(std::get<SignalReply>(*reply).status, SignalStatus::kUnknownGrant);
  writable = grant(true, kClient);
  EXPECT_EQ(signal(call(2)), SignalStatus::kOk);
  EXPECT_EQ(events(*watcher).at(0).value, 2u);
}

TEST_P(BrickSignals, WhatACallNamesTwiceIsToldOnce) {
  ASSERT_EQ(watch(*watcher, readable, 1, 0, 100), WatchStatus::kOk);
  SignalCall wanted = call(1, 16, 8);
  for (const uint64_t offset : {0, 16, 8, 4, 50}) wanted.ranges.push_back({writable.grant, offset, 8});
  EXPECT_EQ(signal(wanted), SignalStatus::kOk);
  const auto told = events(*watcher);
  ASSERT_EQ(told.size(), 2u);
  EXPECT_EQ(told[0].offset, 0u);
  EXPECT_EQ(told[0].length, 24u);
  EXPECT_EQ(told[1].offset, 50u);
}

TEST_P(BrickSignals, ACallForEventsOutOfTurnEndsTheConnection) {
  watcher->send(EventsCall{.id = 1});
  EXPECT_TRUE(watcher->ends()) << "nothing is watched";
  watcher = greeted(2);
  ASSERT_EQ(watch(*watcher, readable, 1, 0, 8), WatchStatus::kOk);
  ASSERT_TRUE(watcher->send(EventsCall{.id = 1}));
  watcher->send(EventsCall{.id = 2});
  EXPECT_TRUE(watcher->ends()) << "two at a time";
}

TEST_P(BrickSignals, TheCallForEventsTakesNoneOfTheCredits) {
  ASSERT_EQ(watch(*watcher, readable, 1, 0, 8), WatchStatus::kOk);
  ASSERT_TRUE(watcher->send(EventsCall{.id = 1}));
  watcher->flood(PersistCall{.id = 3}, kSessionCredits);
  for (uint32_t i = 0; i < kSessionCredits; ++i) ASSERT_TRUE(watcher->receive());
  EXPECT_EQ(signal(call(1)), SignalStatus::kOk);
  ASSERT_TRUE(watcher->receive());
}

// Before the answer the watch is there, and behind the end of its connection nobody looks for it.
TEST_P(BrickSignals, ConnectionsThatEndWhileOthersSignalAreForgotten) {
  std::atomic<bool> stop = false;
  std::thread signals([&] {
    for (uint64_t value = 1; !stop; ++value) ASSERT_EQ(signal(call(value)), SignalStatus::kOk);
  });
  for (int turn = 0; turn < 50; ++turn) {
    ASSERT_EQ(watch(*watcher, readable, 1, 0, 8), WatchStatus::kOk);
    uint64_t last = 0;
    for (int i = 0; i < 3; ++i) {
      for (const Event& event : events(*watcher)) {
        ASSERT_TRUE(event.kind != EventKind::kSignal || event.value > last);
        last = event.value;
      }
    }
    if (turn % 2 == 0) {
      watcher->queue_pair().fail();
    } else {
      ASSERT_EQ(brick->withdraw(readable.grant, kOther), Status::kOk);
      readable = grant(false, kOther);
    }
    const xdr::FixedOpaque<8> before = verifier;
    auto next = TestClient::connect(brick->transport(), brick->address(), ticket_of(2));
    ASSERT_TRUE(next);
    ASSERT_TRUE((*next)->hello());
    watcher = std::move(*next);
    ASSERT_EQ(before, verifier);
  }
  stop = true;
  signals.join();
}

INSTANTIATE_TEST_SUITE_P(Transports, BrickSignals, testing::Values("memory", "iwarp"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace pnfsrdma::brick
