// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/unit/mds/ops/test_server.h"

namespace pnfsrdma::mds {
namespace {

using nfs4::Status;

class SessionTest : public ::testing::Test {
 protected:
  // One COMPOUND as it is, without SEQUENCE put in front.
  Status raw(const Operations& operations, uint32_t minor_version = 2) {
    return server_.call(operations, client_.who, minor_version).status;
  }
  nfs4::CompoundResults send(nfs4::SequenceArguments sequence, Operations rest = {}) {
    rest.insert(rest.begin(), sequence);
    return server_.call(rest, client_.who);
  }

  TestHost host_;
  TestServer server_{host_};
  TestClient client_{server_};
};

TEST_F(SessionTest, MinorVersionsOneAndTwoAreSpoken) {
  EXPECT_EQ(raw({}, 0), Status::kMinorVersMismatch);
  EXPECT_EQ(raw({}, 1), Status::kOk);
  EXPECT_EQ(raw({}, 2), Status::kOk);
  EXPECT_EQ(raw({}, 3), Status::kMinorVersMismatch);
}

TEST_F(SessionTest, NothingGoesWithoutSequence) {
  EXPECT_EQ(raw({nfs4::PutRootFileHandleArguments{}}), Status::kOpNotInSession);
  EXPECT_EQ(raw({nfs4::DestroySessionArguments{}, nfs4::PutRootFileHandleArguments{}}), Status::kNotOnlyOp);
  EXPECT_EQ(raw({nfs4::IllegalArguments{}}), Status::kOpIllegal);
  EXPECT_EQ(raw({nfs4::SequenceArguments{}}), Status::kBadSession);
}

TEST_F(SessionTest, SequenceComesFirstAndOnce) {
  client_.connect();
  EXPECT_EQ(client_.status({nfs4::SequenceArguments{}}), Status::kSequencePos);
}

TEST_F(SessionTest, RetryGetsTheSameBytesAndRunsNothingTwice) {
  client_.connect();
  nfs4::CreateArguments create;
  create.type = nfs4::CreateType::make<nfs4::FileType::kDirectory>();
  create.name = "d";
  const Operations operations{client_.next_sequence(), nfs4::PutRootFileHandleArguments{}, create};
  const auto first = server_.begin(operations);
  while (!*first) host_.turn();
  const auto second = server_.begin(operations);
  ASSERT_NE(*second, nullptr);
  EXPECT_EQ(**first, **second);
  EXPECT_EQ(server_.counters.replays, 1U);
}

TEST_F(SessionTest, RetryBeforeTheReplyHasLeftIsDelayed) {
  client_.connect();
  nfs4::CreateArguments create;
  create.type = nfs4::CreateType::make<nfs4::FileType::kDirectory>();
  create.name = "d";
  const Operations operations{client_.next_sequence(), nfs4::PutRootFileHandleArguments{}, create};
  const auto first = server_.begin(operations);
  // The batch is not synced before the end of the turn: the reply waits.
  EXPECT_EQ(*first, nullptr);
  EXPECT_EQ(server_.call(operations).status, Status::kDelay);
  EXPECT_NE(*first, nullptr);
}

// The death of the daemon in the middle of a turn must not take what somebody has been told.
TEST_F(SessionTest, AReplyWaitsUntilWhatItMayHaveSeenIsWritten) {
  client_.connect();
  auto opening = client_.open_arguments("f", kShareBoth);
  opening.how = creating(create_how(nfs4::CreateMode::kUnchecked, mode_attribute(0644)));
  ASSERT_TRUE(client_.open(opening).ok());
  TestClient other(server_, "other");
  other.connect();
  host_.turn();
  host_.store.write_at_turn_end();
  const Operations open_again{client_.next_sequence(), nfs4::PutRootFileHandleArguments{},
                              client_.open_arguments("f", kShareRead, 0, "another owner")};
  const auto before = server_.begin({other.next_sequence()});
  const auto first = server_.begin(open_again);
  const auto behind = server_.begin({other.next_sequence()});
  EXPECT_NE(*before, nullptr) << "nothing was committed in this turn then";
  EXPECT_EQ(*first, nullptr);
  EXPECT_EQ(*behind, nullptr);
  host_.turn();
  EXPECT_NE(*first, nullptr);
  EXPECT_NE(*behind, nullptr);
}

TEST_F(SessionTest, RetryOfAnUncachedRequestIsTold) {
  client_.connect();
  client_.cache = false;
  const auto sequence = client_.next_sequence();
  ASSERT_EQ(send(sequence, {nfs4::PutRootFileHandleArguments{}}).status, Status::kOk);
  const auto retried = send(sequence, {nfs4::PutRootFileHandleArguments{}});
  ASSERT_EQ(retried.operations.size(), 2U);
  EXPECT_EQ(nfs4::status_of(retried.operations[0]), Status::kOk);
  EXPECT_EQ(retried.status, Status::kRetryUncachedRep);
}

TEST_F(SessionTest, DifferentRequestUnderAnOldSeqidIsAFalseRetry) {
  client_.connect();
  const auto sequence = client_.next_sequence();
  ASSERT_EQ(send(sequence, {nfs4::PutRootFileHandleArguments{}}).status, Status::kOk);
  EXPECT_EQ(send(sequence, {nfs4::PutPublicFileHandleArguments{}}).status, Status::kSeqFalseRetry);
}

TEST_F(SessionTest, FailedSequenceLeavesTheSlotAlone) {
  client_.connect();
  auto sequence = client_.next_sequence();
  sequence.sequence_id += 5;
  EXPECT_EQ(send(sequence).status, Status::kSeqMisordered);
  sequence.sequence_id -= 5;
  EXPECT_EQ(send(sequence).status, Status::kOk);
}

TEST_F(SessionTest, MoreOperationsThanAgreedAreRefused) {
  client_.connect();
  const Operations many(20, nfs4::PutRootFileHandleArguments{});
  EXPECT_EQ(send(client_.next_sequence(), many).status, Status::kTooManyOps);
}

TEST_F(SessionTest, ReplyThatDoesNotFitTheCacheIsRefusedInPlaceOfTheResult) {
  client_.connect();
  const auto arguments = client_.open_arguments("f", kShareBoth);
  auto creating_one = arguments;
  creating_one.how = creating(create_how(nfs4::CreateMode::kUnchecked, mode_attribute(0644)));
  const auto opened = client_.open(creating_one);
  ASSERT_TRUE(opened.ok());
  nfs4::WriteArguments write;
  write.stateid = opened.result.stateid;
  const Bytes data(8192);
  write.data = nfs4::Data::view_of(data);
  ASSERT_EQ(client_.status({nfs4::PutFileHandleArguments{client_.last_handle}, write}), Status::kOk);
  nfs4::ReadArguments read{.stateid = opened.result.stateid, .offset = 0, .count = 8192};
  EXPECT_EQ(client_.status({nfs4::PutFileHandleArguments{client_.last_handle}, read}),
            Status::kRepTooBigToCache);
  client_.cache = false;
  EXPECT_EQ(client_.status({nfs4::PutFileHandleArguments{client_.last_handle}, read}), Status::kOk);
}

// --- EXCHANGE_ID (RFC 8881, 18.35.4) ---

TEST_F(SessionTest, ExchangeIdOfANewOwnerIsUnconfirmed) {
  const auto first = client_.exchange_id();
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(first.result.flags, nfs4::kExchangeUsePnfsMds);
  const auto second = client_.exchange_id();
  EXPECT_NE(first.result.client_id, second.result.client_id);  // unconfirmed: replaced
}

TEST_F(SessionTest, ExchangeIdOfAConfirmedOwnerGetsTheSameId) {
  client_.connect();
  const auto again = client_.exchange_id();
  EXPECT_EQ(again.result.client_id, client_.id);
  EXPECT_NE(again.result.flags & nfs4::kExchangeConfirmed, 0U);
}

TEST_F(SessionTest, ExchangeIdUpdateCases) {
  EXPECT_EQ(client_.exchange_id(nfs4::kExchangeUpdateConfirmed).status, Status::kNoEnt);
  client_.connect();
  EXPECT_EQ(client_.exchange_id(nfs4::kExchangeUpdateConfirmed).result.client_id, client_.id);
  client_.who.uid = 5;
  EXPECT_EQ(client_.exchange_id(nfs4::kExchangeUpdateConfirmed).status, Status::kPerm);
  client_.who.uid = 0;
  client_.owner.verifier[0] = std::byte{9};
  EXPECT_EQ(client_.exchange_id(nfs4::kExchangeUpdateConfirmed).status, Status::kNotSame);
}

TEST_F(SessionTest, ExchangeIdOfAnotherPrincipalCollidesWhileThereIsState) {
  client_.connect();
  TestClient other(server_);
  other.who.uid = 77;
  EXPECT_EQ(other.exchange_id().status, Status::kClidInuse);
}

TEST_F(SessionTest, ExchangeIdRefusesUnknownFlagsAndStateProtection) {
  EXPECT_EQ(client_.exchange_id(0x8).status, Status::kInval);
  EXPECT_EQ(client_.exchange_id(nfs4::kExchangeConfirmed).status, Status::kInval);
  nfs4::ExchangeIdArguments arguments;
  arguments.owner = client_.owner;
  arguments.state_protect = nfs4::StateProtectArguments::of(nfs4::StateProtect::kMachineCredential);
  EXPECT_EQ(raw({arguments}), Status::kInval);
  arguments.state_protect = nfs4::StateProtectArguments::of(nfs4::StateProtect::kSsv);
  EXPECT_EQ(raw({arguments}), Status::kEncrAlgUnsupp);
}

TEST_F(SessionTest, RebootedClientLosesItsOldStateWhenTheNewIsConfirmed) {
  client_.connect();
  auto arguments = client_.open_arguments("f", kShareBoth, kShareBoth);
  arguments.how = creating(create_how(nfs4::CreateMode::kUnchecked, mode_attribute(0644)));
  ASSERT_TRUE(client_.open(arguments).ok());
  TestClient rebooted(server_, "client", 2);
  const auto exchanged = rebooted.exchange_id();
  ASSERT_TRUE(exchanged.ok());
  EXPECT_EQ(server_.opens.size(), 1U);
  rebooted.id = exchanged.result.client_id;
  // Its layouts are still being fenced: CREATE_SESSION waits for that.
  server_.layouts.hold = true;
  const auto reply = server_.begin({rebooted.session_arguments(exchanged.result.sequence_id)});
  host_.turn();
  EXPECT_EQ(*reply, nullptr);
  EXPECT_EQ(rebooted.create_session(exchanged.result.sequence_id).status, Status::kDelay);
  server_.layouts.release();
  host_.turn();
  EXPECT_NE(*reply, nullptr);
  EXPECT_EQ(server_.opens.size(), 0U);
  EXPECT_EQ(client_.call({}).status, Status::kBadSession);
}

// Anybody may ask for a client ID, in one call each.
TEST_F(SessionTest, AFloodOfExchangeIdsKeepsNobodyFromConfirmingHis) {
  server_.limits.unconfirmed_clients_max = 8;
  server_.peer = "10.0.0.2:900";
  const auto exchanged = client_.exchange_id();
  client_.id = exchanged.result.client_id;
  server_.peer = "10.0.0.1:900";
  for (int i = 0; i < 100; ++i) {
    TestClient stranger(server_, "stranger" + std::to_string(i));
    EXPECT_TRUE(stranger.exchange_id().ok());
    EXPECT_LE(server_.clients.unconfirmed(), 8U);
  }
  server_.peer = "10.0.0.2:900";
  EXPECT_TRUE(client_.create_session(exchanged.result.sequence_id).ok());
  server_.peer = "10.0.0.3:900";
  TestClient late(server_, "late");
  late.connect();
}

TEST_F(SessionTest, OneAddressHasAShareOfThePlaces) {
  server_.limits.clients_max = 3;
  server_.limits.clients_per_address_max = 2;
  const auto joins = [&](const std::string& address, const std::string& owner, uint64_t incarnation = 1) {
    server_.peer = address + ":900";
    TestClient client(server_, owner, incarnation);
    const auto exchanged = client.exchange_id();
    client.id = exchanged.result.client_id;
    return client.create_session(exchanged.result.sequence_id).status;
  };
  EXPECT_EQ(joins("10.0.0.1", "a"), Status::kOk);
  EXPECT_EQ(joins("10.0.0.1", "b"), Status::kOk);
  EXPECT_EQ(joins("10.0.0.1", "c"), Status::kDelay);
  EXPECT_EQ(joins("10.0.0.1", "b", 2), Status::kOk) << "it has rebooted, and replaces itself";
  EXPECT_EQ(joins("10.0.0.2", "d"), Status::kOk);
  EXPECT_EQ(joins("10.0.0.3", "e"), Status::kDelay) << "as many as there may be";
  const auto d = server_.clients.find_confirmed(as_bytes("d"));
  ASSERT_NE(d, nullptr);
  server_.leases.retire(d, [] {});
  EXPECT_EQ(joins("10.0.0.3", "e"), Status::kOk);
  EXPECT_EQ(server_.clients.confirmed_of("10.0.0.1"), 2U);
  EXPECT_EQ(server_.clients.confirmed_of("10.0.0.2"), 0U);
}

// --- CREATE_SESSION (18.36.4) ---

TEST_F(SessionTest, CreateSessionHasItsOwnReplayCache) {
  const auto exchanged = client_.exchange_id();
  client_.id = exchanged.result.client_id;
  const uint32_t sequence = exchanged.result.sequence_id;
  EXPECT_EQ(client_.create_session(sequence + 1).status, Status::kSeqMisordered);
  const auto first = client_.create_session(sequence);
  ASSERT_TRUE(first.ok());
  const auto replayed = client_.create_session(sequence);
  ASSERT_TRUE(replayed.ok());
  EXPECT_EQ(first.result.session_id, replayed.result.session_id);
  const auto next = client_.create_session(sequence + 1);
  ASSERT_TRUE(next.ok());
  EXPECT_NE(first.result.session_id, next.result.session_id);
  EXPECT_EQ(client_.create_session(sequence).status, Status::kSeqMisordered);
}

TEST_F(SessionTest, ARebootedClientIsToldToComeBackWhileItsEarlierSelfCannotBeFenced) {
  client_.connect();
  server_.leases.start(host_.loop, Milliseconds(1000));
  server_.layouts.hold = true;  // as when the brick is away
  TestClient again(server_, "client", 2);
  const auto exchanged = again.exchange_id();
  ASSERT_TRUE(exchanged.ok());
  again.id = exchanged.result.client_id;
  const uint32_t sequence = exchanged.result.sequence_id;
  const auto first = server_.begin({again.session_arguments(sequence)});
  for (int second = 0; second < 60; ++second) {
    host_.clock.advance(Milliseconds(1000));
    host_.turn();
    host_.turn();
    // Within a few seconds there is an answer; it stays DELAY, and the client is not forgotten meanwhile.
    if (second >= 3) {
      ASSERT_TRUE(*first);
      EXPECT_EQ(xdr::decode_from<nfs4::CompoundResults>(**first)->status, Status::kDelay);
      EXPECT_EQ(again.create_session(sequence).status, Status::kDelay);
    }
  }
  server_.layouts.release();
  EXPECT_TRUE(again.create_session(sequence).ok());
}

TEST_F(SessionTest, AServerThatCannotSyncAnswersEverybodyWhoWaits) {
  client_.connect();
  server_.layouts.hold = true;
  TestClient again(server_, "client", 2);
  again.id = again.exchange_id().result.client_id;
  const auto waiting = server_.begin({again.session_arguments(1)});
  const auto reading =
      server_.begin({client_.next_sequence(), nfs4::PutRootFileHandleArguments{}, nfs4::CreateArguments{}});
  server_.compounds.refuse_all();
  EXPECT_EQ(server_.compounds.running(), 0U);
  ASSERT_TRUE(*waiting);
  const auto results = xdr::decode_from<nfs4::CompoundResults>(**waiting);
  ASSERT_TRUE(results);
  EXPECT_EQ(results->status, Status::kServerFault);
  EXPECT_EQ(response_at<nfs4::CreateSessionResponse>(*results, 0).status, Status::kServerFault);
  EXPECT_TRUE(*reading);
}

TEST_F(SessionTest, CreateSessionChecksItsArguments) {
  client_.id = 12345;
  EXPECT_EQ(client_.create_session(1).status, Status::kStaleClientId);
  client_.id = client_.exchange_id().result.client_id;
  auto arguments = client_.session_arguments(1);
  arguments.flags = 0x10;
  EXPECT_EQ(raw({arguments}), Status::kInval);
  arguments = client_.session_arguments(1);
  arguments.fore_channel.max_request_size = 10;
  EXPECT_EQ(raw({arguments}), Status::kTooSmall);
  arguments = client_.session_arguments(1);
  arguments.fore_channel.max_response_size = 10;
  EXPECT_EQ(raw({arguments}), Status::kTooSmall);
  client_.who.uid = 3;
  EXPECT_EQ(raw({client_.session_arguments(1)}), Status::kClidInuse);
}

TEST_F(SessionTest, SmallMessagesAreAsGoodAsLargeOnes) {
  client_.id = client_.exchange_id().result.client_id;
  auto arguments = client_.session_arguments(1);
  arguments.fore_channel.max_request_size = arguments.fore_channel.max_response_size = 400;
  EXPECT_EQ(raw({arguments}), Status::kOk);
}

TEST_F(SessionTest, ChannelAttributesAreCutToWhatTheServerTakes) {
  client_.id = client_.exchange_id().result.client_id;
  auto arguments = client_.session_arguments(1);
  arguments.fore_channel.max_request_size = UINT32_MAX;
  arguments.fore_channel.max_requests = 100'000;
  arguments.fore_channel.header_pad_size = 512;
  const auto results = server_.call({arguments});
  const auto& fore = response_at<nfs4::CreateSessionResponse>(results, 0).result.fore_channel;
  EXPECT_EQ(fore.max_request_size, server_.limits.request_bytes_max);
  EXPECT_EQ(fore.max_requests, server_.limits.session_slots_max);
  EXPECT_EQ(fore.header_pad_size, 0U);
}

// --- the ends ---

TEST_F(SessionTest, SessionAndClientIdCanBeDestroyed) {
  client_.connect();
  EXPECT_EQ(raw({nfs4::DestroyClientIdArguments{client_.id}}), Status::kClientIdBusy);
  EXPECT_EQ(raw({nfs4::DestroySessionArguments{client_.session}}), Status::kOk);
  EXPECT_EQ(raw({nfs4::DestroySessionArguments{client_.session}}), Status::kBadSession);
  EXPECT_EQ(raw({nfs4::DestroyClientIdArguments{client_.id}}), Status::kOk);
  EXPECT_EQ(raw({nfs4::DestroyClientIdArguments{client_.id}}), Status::kStaleClientId);
}

TEST_F(SessionTest, OwnSessionIsDestroyedByTheLastOperationOnly) {
  client_.connect();
  EXPECT_EQ(
      client_.status({nfs4::DestroySessionArguments{client_.session}, nfs4::PutRootFileHandleArguments{}}),
      Status::kNotOnlyOp);
  EXPECT_EQ(client_.status({nfs4::DestroySessionArguments{client_.session}}), Status::kOk);
  EXPECT_EQ(client_.call({}).status, Status::kBadSession);
}

TEST_F(SessionTest, ReclaimCompleteOnce) {
  client_.connect();
  EXPECT_EQ(client_.status({nfs4::ReclaimCompleteArguments{}}), Status::kCompleteAlready);
}

TEST_F(SessionTest, OpenBeforeReclaimCompleteIsGrace) {
  client_.id = client_.exchange_id().result.client_id;
  ASSERT_TRUE(client_.create_session(1).ok());
  EXPECT_EQ(client_.open(client_.open_arguments("f", kShareRead)).status, Status::kGrace);
}

TEST_F(SessionTest, BindConnectionStandsAlone) {
  client_.connect();
  nfs4::BindConnectionToSessionArguments bind;
  bind.session_id = client_.session;
  bind.direction = nfs4::DirectionFromClient::kForeOrBoth;
  EXPECT_EQ(raw({bind}), Status::kOk);
  EXPECT_EQ(client_.status({bind}), Status::kNotOnlyOp);
}

TEST_F(SessionTest, ForbiddenAndMissingOperationsAreNotSupported) {
  client_.connect();
  EXPECT_EQ(client_.status({nfs4::RenewArguments{}}), Status::kNotSupp);
  EXPECT_EQ(client_.status({nfs4::SetClientIdArguments{}}), Status::kNotSupp);
  EXPECT_EQ(client_.status({nfs4::AllocateArguments{}}), Status::kNotSupp);
}

}  // namespace
}  // namespace pnfsrdma::mds
