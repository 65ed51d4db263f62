// SPDX-License-Identifier: Apache-2.0
#include "shared/brick/session_codec.h"

#include <gtest/gtest.h>

#include "shared/base/random.h"
#include "shared/rdma/transport.h"
#include "tests/doubles/seeded_random.h"

namespace pnfsrdma::brick {
namespace {

Bytes encoded(const SessionMessage& message) {
  Bytes bytes(kSessionMessageMax);
  bytes.resize(encode_session_message(message, bytes));
  return bytes;
}

TEST(SessionCodec, EachMessageComesBackAsItWas) {
  HelloReply reply{.connection = 7, .more = true};
  reply.grants.push_back({11, 22, 33});
  const auto hello = decode_session_message(encoded(reply));
  ASSERT_TRUE(hello);
  EXPECT_EQ(std::get<HelloReply>(*hello).grants[0].address, 33u);
  EXPECT_TRUE(std::get<HelloReply>(*hello).more);

  PersistCall call{.id = 5};
  call.ranges.push_back({1, 2, 3});
  const auto persist = decode_session_message(encoded(call));
  ASSERT_TRUE(persist);
  EXPECT_EQ(std::get<PersistCall>(*persist).ranges[0].length, 3u);

  EXPECT_TRUE(std::holds_alternative<HelloCall>(*decode_session_message(encoded(HelloCall{}))));
  const auto answer =
      decode_session_message(encoded(PersistReply{.id = 9, .status = PersistStatus::kBounds}));
  EXPECT_EQ(std::get<PersistReply>(*answer).status, PersistStatus::kBounds);
}

TEST(SessionCodec, ChangesOfWordsAndVerificationsComeBackAsTheyWere) {
  const auto call = decode_session_message(encoded(ChangeWordCall{.id = 1,
                                                                  .record = 2,
                                                                  .slot = 3,
                                                                  .sequence = 4,
                                                                  .change = WordChange::kCompareAndSwap,
                                                                  .durable = true,
                                                                  .grant = 5,
                                                                  .offset = 6,
                                                                  .operand = 7,
                                                                  .expected = 8}));
  ASSERT_TRUE(call);
  const auto& change = std::get<ChangeWordCall>(*call);
  EXPECT_EQ(change.change, WordChange::kCompareAndSwap);
  EXPECT_TRUE(change.durable);
  EXPECT_EQ(change.expected, 8u);
  const auto reply =
      decode_session_message(encoded(ChangeWordReply{.status = WordStatus::kForgotten, .before = 9}));
  EXPECT_EQ(std::get<ChangeWordReply>(*reply).before, 9u);

  VerifyCall verify{.id = 5};
  verify.ranges.resize(kVerifyRangesPerMessage);
  EXPECT_TRUE(decode_session_message(encoded(verify)));
  VerifyReply told{.id = 5, .medium = true};
  told.checksums.assign(kVerifyRangesPerMessage, 17);
  const auto verified = decode_session_message(encoded(told));
  ASSERT_TRUE(verified);
  EXPECT_EQ(std::get<VerifyReply>(*verified).checksums.back(), 17u);
  EXPECT_TRUE(std::get<VerifyReply>(*verified).medium);
}

TEST(SessionCodec, WatchesSignalsAndEventsComeBackAsTheyWere) {
  const auto watch = decode_session_message(encoded(WatchCall{.id = 1, .watch = 2, .grant = 3, .length = 5}));
  ASSERT_TRUE(watch);
  EXPECT_EQ(std::get<WatchCall>(*watch).length, 5u);
  const auto watched = decode_session_message(encoded(WatchReply{.id = 1, .status = WatchStatus::kLimit}));
  EXPECT_EQ(std::get<WatchReply>(*watched).status, WatchStatus::kLimit);
  SignalCall signal{.id = 1, .value = 77};
  signal.ranges.resize(kSignalRangesPerMessage);
  const auto signalled = decode_session_message(encoded(signal));
  ASSERT_TRUE(signalled);
  EXPECT_EQ(std::get<SignalCall>(*signalled).value, 77u);
  EXPECT_EQ(std::get<SignalCall>(*signalled).ranges.size(), kSignalRangesPerMessage);
  const auto done = decode_session_message(encoded(SignalReply{.id = 1, .status = SignalStatus::kVerifier}));
  EXPECT_EQ(std::get<SignalReply>(*done).status, SignalStatus::kVerifier);
  EXPECT_EQ(std::get<EventsCall>(*decode_session_message(encoded(EventsCall{.id = 4}))).id, 4u);
  EventsReply events{.id = 4};
  events.events.assign(kEventsPerMessage, {.watch = 2, .kind = EventKind::kEnd, .sequence = 3, .value = 9});
  EXPECT_LE(encoded(events).size(), kSessionMessageMax);
  const auto told = decode_session_message(encoded(events));
  ASSERT_TRUE(told);
  EXPECT_EQ(std::get<EventsReply>(*told).events.back().kind, EventKind::kEnd);
  EXPECT_EQ(std::get<EventsReply>(*told).events.back().value, 9u);
}

TEST(SessionCodec, WhatABrickOfBeforeDoesNotSayItDoesNotUnderstand) {
  EXPECT_EQ(decode_accept({}).understands, 0u);
  EXPECT_EQ(decode_accept(Bytes(5)).understands, 0u);
  EXPECT_EQ(decode_accept(Bytes(rdma::kPrivateDataMax)).record, 0u);
  Bytes said = encode_accept({.understands = kUnderstandsChangeWord, .record = 99});
  EXPECT_LE(said.size(), rdma::kPrivateDataMax);
  EXPECT_EQ(decode_accept(said).record, 99u);
  said.resize(rdma::kPrivateDataMax);  // as RoCE pads it
  EXPECT_EQ(decode_accept(said).understands, kUnderstandsChangeWord);
  EXPECT_EQ(decode_accept(said).record, 99u);
}

TEST(SessionCodec, NothingButItsRoomIsLeftOfTheMessageBefore) {
  SessionMessage message;
  PersistCall longer{.id = 5};
  longer.ranges.resize(3);
  ASSERT_TRUE(decode_session_message(encoded(longer), message));
  const PersistTarget* const room = std::get<PersistCall>(message).ranges.data();

  PersistCall shorter{.id = 6};
  shorter.ranges.push_back({1, 2, 3});
  ASSERT_TRUE(decode_session_message(encoded(shorter), message));
  const auto& call = std::get<PersistCall>(message);
  EXPECT_EQ(call.id, 6u);
  ASSERT_EQ(call.ranges.size(), 1u);
  EXPECT_EQ(call.ranges[0].length, 3u);
  EXPECT_EQ(call.ranges.data(), room);

  ASSERT_TRUE(decode_session_message(encoded(PersistReply{.id = 9}), message));
  EXPECT_EQ(std::get<PersistReply>(message).id, 9u);
}

TEST(SessionCodec, LongestMessagesFitTheirBuffers) {
  HelloReply hello;
  hello.grants.resize(kHelloGrantsPerMessage);
  EXPECT_LE(encoded(hello).size(), kSessionMessageMax);
  PersistCall call;
  call.ranges.resize(kPersistRangesPerMessage);
  EXPECT_LE(encoded(call).size(), kSessionMessageMax);
}

TEST(SessionCodec, CutLongAndUnknownMessagesAreRefused) {
  Bytes bytes = encoded(PersistReply{.id = 1});
  for (size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_FALSE(decode_session_message(ByteSpan(bytes).first(length))) << length;
  }
  bytes.push_back(std::byte{0});
  EXPECT_FALSE(decode_session_message(bytes));
  store_big_endian<uint32_t>(bytes.data(), 77);
  EXPECT_FALSE(decode_session_message(bytes));
}

TEST(SessionCodec, ArbitraryBytesNeverCrashIt) {
  SeededRandom random(1);
  for (int round = 0; round < 2000; ++round) {
    Bytes bytes(random.next_u32() % 256);
    random.fill(bytes);
    if (bytes.size() >= 4) store_big_endian<uint32_t>(bytes.data(), random.next_u32() % 16);
    static_cast<void>(decode_session_message(bytes));
    static_cast<void>(decode_connect(bytes));
  }
}

TEST(SessionCodec, PrivateDataFitsTheConnectionManager) {
  ConnectPrivateData data;
  data.ticket.fill(std::byte{0x5A});
  const Bytes bytes = encode_connect(data);
  EXPECT_LE(bytes.size(), rdma::kPrivateDataMax);
  EXPECT_EQ(decode_connect(bytes)->ticket, data.ticket);
  for (const auto reason : {RejectReason::kVersion, RejectReason::kTicket, RejectReason::kBusy}) {
    const Bytes text = encode_reject(reason);
    EXPECT_LE(text.size(), rdma::kPrivateDataMax);
    EXPECT_EQ(reject_reason(Error(ECONNREFUSED, std::string(as_text(text)))), reason);
  }
  EXPECT_FALSE(reject_reason(Error(ECONNREFUSED, "connect")));
}

}  // namespace
}  // namespace pnfsrdma::brick
