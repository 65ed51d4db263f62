// SPDX-License-Identifier: Apache-2.0
#include "shared/initiator/session/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "shared/initiator/cancellation.h"
#include "tests/unit/initiator/session/scripted_mds.h"

namespace pnfsrdma::initiator {
namespace {

using namespace std::chrono_literals;
using nfs4::Status;
using Fault = ScriptedMds::Fault;
using testing::HasSubstr;

class Handlers final : public CallbackHandler, public RecoveryHandler {
 public:
  CallbackAnswer layout_recall(const nfs4::CallbackLayoutRecallArguments&) override {
    ++recalls;
    return {Status::kOk, [this] { ++afterwards; }};
  }
  CallbackAnswer recall_any(const nfs4::CallbackRecallAnyArguments&) override { return {Status::kOk, {}}; }
  CallbackAnswer notify_deviceid(const nfs4::CallbackNotifyDeviceIdArguments&) override {
    return {Status::kOk, {}};
  }
  void layouts_lost() override { ++lost; }
  void session_renewed() override { ++renewed; }
  void state_revoked() override { ++doubts; }
  void reclaim() override {
    ++reclaims;
    if (on_reclaim) on_reclaim();
  }
  std::vector<nfs4::Stateid> stateids_in_doubt() override {
    const std::lock_guard lock(mutex);
    return in_doubt;
  }
  void stateid_gone(const nfs4::Stateid& stateid) override {
    const std::lock_guard lock(mutex);
    std::erase(in_doubt, stateid);
  }
  std::mutex mutex;
  std::vector<nfs4::Stateid> in_doubt;
  std::atomic<int> recalls = 0, afterwards = 0, lost = 0, renewed = 0, doubts = 0, reclaims = 0;
  std::function<void()> on_reclaim;
};

class SessionTest : public testing::Test {
 protected:
  SessionOptions options() const {
    SessionOptions options;
    options.host = "127.0.0.1";
    options.port = mds.port;
    options.owner = "test";
    options.timeout = 10s;
    return options;
  }
  std::unique_ptr<Session> start(const SessionOptions& wanted) {
    auto session = Session::start(wanted, &handlers, &handlers);
    EXPECT_TRUE(session.has_value()) << session.error().to_string();
    const std::lock_guard lock(mds.mutex);
    mds.executed = 0;
    mds.requests.clear();
    mds.sequences.clear();
    mds.headers.clear();
    return session ? std::move(*session) : nullptr;
  }
  std::unique_ptr<Session> start() { return start(options()); }

  static Session::Operations remove() {
    return {nfs4::PutRootFileHandleArguments{}, nfs4::RemoveArguments{"x"}};
  }
  template <typename T>
  T look(T ScriptedMds::* member) {
    const std::lock_guard lock(mds.mutex);
    return mds.*member;
  }
  void faults(std::deque<Fault> wanted) {
    const std::lock_guard lock(mds.mutex);
    mds.faults = std::move(wanted);
  }

  ScriptedMds mds;
  Handlers handlers;
};

bool eventually(const std::function<bool()>& condition) {
  for (int i = 0; i < 500 && !condition(); ++i) std::this_thread::sleep_for(10ms);
  return condition();
}

TEST_F(SessionTest, ACallIsOneSendAndOneReceive) {
  const auto session = start();
  ASSERT_TRUE(session->call(remove(), {}));  // disarms the poller
  const SessionStatistics before = session->statistics();
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(session->call(remove(), {}));
  const SessionStatistics after = session->statistics();
  EXPECT_EQ(after.send_calls - before.send_calls, 100u);
  // The background thread may look once in a while when the test is held up for more than its delay.
  EXPECT_LE(after.receive_calls - before.receive_calls, 110u);
  EXPECT_EQ(after.compounds - before.compounds, 100u);
}

TEST_F(SessionTest, CredentialsOfTheCallerAreSent) {
  const auto session = start();
  ASSERT_TRUE(session->call(remove(), {1000, 1001, {7, 8}}));
  const std::lock_guard lock(mds.mutex);
  const auto auth = rpc::to_auth_sys(mds.headers.back().credential);
  ASSERT_TRUE(auth.has_value());
  EXPECT_EQ(auth->uid, 1000u);
  EXPECT_EQ(auth->gid, 1001u);
  EXPECT_THAT(auth->gids, testing::ElementsAre(7, 8));
}

TEST_F(SessionTest, ALostReplyIsAskedForWithTheSameBytesAndNotDoneTwice) {
  const auto session = start();
  faults({Fault::kDropAfter});
  const auto reply = session->call(remove(), {}, {.cache_reply = true});
  ASSERT_TRUE(reply) << reply.error().to_string();
  EXPECT_TRUE(reply->ok());
  EXPECT_EQ(look(&ScriptedMds::executed), 1u);
  const auto requests = look(&ScriptedMds::requests);
  ASSERT_EQ(requests.size(), 2u);
  EXPECT_EQ(requests[0], requests[1]);
  EXPECT_EQ(look(&ScriptedMds::binds), 1u);
  EXPECT_EQ(session->statistics().reconnects, 1u);
}

TEST_F(SessionTest, ARepeatedCallWhoseAnswerWasNotKeptIsMadeAnew) {
  const auto session = start();
  bool said = false;
  {
    const std::lock_guard lock(mds.mutex);
    mds.on_operation = [&](const nfs4::ArgumentOperation& operation) -> nfs4::ResultOperation {
      const Status status = std::exchange(said, true) ? Status::kOk : Status::kRetryUncachedRep;
      return nfs4::status_result(nfs4::operation_of(operation), status);
    };
  }
  const auto reply = session->call({nfs4::PutRootFileHandleArguments{}}, {});
  ASSERT_TRUE(reply) << reply.error().to_string();
  EXPECT_TRUE(reply->ok()) << nfs4::to_string(reply->status);
  EXPECT_TRUE(reply->repeated);
}

TEST_F(SessionTest, ALostRequestIsSentAgain) {
  const auto session = start();
  faults({Fault::kDropBefore, Fault::kDropBefore});
  ASSERT_TRUE(session->call(remove(), {}));
  EXPECT_EQ(look(&ScriptedMds::executed), 1u);
  EXPECT_EQ(look(&ScriptedMds::requests).size(), 3u);
}

TEST_F(SessionTest, ALostSessionIsMadeAnewUnderTheSameClient) {
  const auto session = start();
  const uint64_t clientid = session->clientid(), generation = session->generation();
  mds.lose_session();
  const auto reply = session->call(remove(), {});
  ASSERT_TRUE(reply) << reply.error().to_string();
  EXPECT_TRUE(reply->ok());
  EXPECT_TRUE(reply->repeated);
  EXPECT_EQ(session->clientid(), clientid);
  EXPECT_NE(session->generation(), generation);
  EXPECT_EQ(handlers.renewed, 1);
  EXPECT_EQ(handlers.lost, 0) << "the server may have kept its layouts";
  EXPECT_EQ(handlers.reclaims, 1) << "only the first one, of the start";
}

// The connection goes when the new session is there, and something is left to be asked.
TEST_F(SessionTest, ASessionIsNewAlsoWhenTheAttemptThatMadeItHasFailed) {
  const auto session = start();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(session->call(remove(), {}));
  mds.lose_session();
  {
    const std::lock_guard lock(mds.mutex);
    mds.drop_after = {nfs4::Operation::kDestroySession, Status::kBadSession};
  }
  mds.drop_connections();
  const auto reply = session->call(remove(), {});
  ASSERT_TRUE(reply) << reply.error().to_string();
  EXPECT_TRUE(reply->ok());
  EXPECT_EQ(look(&ScriptedMds::sessions_made), 2u) << "its numbers begin anew";
  EXPECT_EQ(handlers.renewed, 1);
  EXPECT_EQ(session->statistics().new_sessions, 1u);
}

TEST_F(SessionTest, AClientIsReclaimedAlsoWhenTheAttemptThatMadeItHasFailed) {
  const auto session = start();
  mds.lose_client();
  {
    const std::lock_guard lock(mds.mutex);
    mds.drop_after = {nfs4::Operation::kCreateSession, Status::kOk};
  }
  const auto reply = session->call(remove(), {});
  ASSERT_TRUE(reply) << reply.error().to_string();
  EXPECT_EQ(handlers.reclaims, 2) << "the server has confirmed the client, and knows nothing of its state";
  EXPECT_EQ(look(&ScriptedMds::reclaim_completes), 2u);
}

// The server did it and died; the next one knows that much of the session it has lost.
TEST_F(SessionTest, WhatALostSessionHasDoneIsAskedForBeforeItIsDoneAgain) {
  const auto session = start();
  faults({Fault::kDieAfter});
  const auto reply = session->call(remove(), {}, {.cache_reply = true});
  ASSERT_TRUE(reply) << reply.error().to_string();
  EXPECT_TRUE(reply->ok());
  EXPECT_FALSE(reply->repeated);
  EXPECT_EQ(look(&ScriptedMds::executed), 1u);
  ASSERT_TRUE(session->call(remove(), {}, {.cache_reply = true}));
  EXPECT_EQ(look(&ScriptedMds::executed), 2u);
  EXPECT_EQ(session->statistics().new_sessions, 1u);
}

TEST_F(SessionTest, ALostSessionThatHasNotDoneItIsNoObstacle) {
  const auto session = start();
  faults({Fault::kDropBefore});
  mds.lose_session();
  const auto reply = session->call(remove(), {}, {.cache_reply = true});
  ASSERT_TRUE(reply) << reply.error().to_string();
  EXPECT_TRUE(reply->repeated);
  EXPECT_EQ(look(&ScriptedMds::executed), 1u);
}

TEST_F(SessionTest, ALostClientReclaimsBeforeOthersGoOn) {
  const auto session = start();
  std::atomic<bool> inside = false;
  handlers.on_reclaim = [&] {
    inside = true;
    EXPECT_TRUE(session->call(remove(), {}, {.recovery = true}));
    EXPECT_EQ(look(&ScriptedMds::executed), 1u);
  };
  const uint64_t clientid = session->clientid();
  mds.lose_client();
  const auto reply = session->call(remove(), {});
  ASSERT_TRUE(reply) << reply.error().to_string();
  EXPECT_TRUE(inside);
  EXPECT_NE(session->clientid(), clientid);
  EXPECT_EQ(look(&ScriptedMds::reclaim_completes), 2u);
  handlers.on_reclaim = nullptr;
}

TEST_F(SessionTest, PostsOfASessionThatIsGoneDoNotKeepTheReclaimFromASlot) {
  const auto session = start();
  faults(std::deque<Fault>(6, Fault::kSilence));
  std::atomic<int> done = 0;
  for (int i = 0; i < 6; ++i)
    session->post(remove(), {}, {},
                  [&](const Result<CompoundReply>& reply) { done += reply && reply->ok(); });
  ASSERT_TRUE(eventually([&] { return look(&ScriptedMds::requests).size() == 6; }));
  {
    // Another server, which gives less.
    const std::lock_guard lock(mds.mutex);
    mds.slots = 2;
  }
  mds.lose_client();
  mds.drop_connections();
  EXPECT_TRUE(session->drain_posts(std::chrono::steady_clock::now() + 5s));
  EXPECT_EQ(done, 6);
}

TEST_F(SessionTest, AConnectionLostDuringReclaimDoesNotLoseTheReclaim) {
  const auto session = start();
  handlers.on_reclaim = [&] {
    if (handlers.reclaims == 2) {
      mds.drop_connections();
      EXPECT_FALSE(session->call(remove(), {}, {.recovery = true}));
    }
  };
  mds.lose_client();
  ASSERT_TRUE(session->call(remove(), {}));
  EXPECT_EQ(handlers.reclaims, 3);
  handlers.on_reclaim = nullptr;
}

TEST_F(SessionTest, DelayIsRepeatedWithoutDoingTheFirstHalfTwice) {
  const auto session = start();
  int removed = 0, asked = 0;
  {
    const std::lock_guard lock(mds.mutex);
    mds.on_operation = [&](const nfs4::ArgumentOperation& operation) -> nfs4::ResultOperation {
      if (std::holds_alternative<nfs4::RemoveArguments>(operation)) ++removed;
      if (std::holds_alternative<nfs4::GetAttributesArguments>(operation) && ++asked < 3) {
        return nfs4::GetAttributesResponse(Status::kDelay);
      }
      return nfs4::status_result(nfs4::operation_of(operation), Status::kOk);
    };
  }
  auto operations = remove();
  operations.emplace_back(nfs4::GetAttributesArguments{});
  const auto reply = session->call(operations, {});
  ASSERT_TRUE(reply);
  EXPECT_TRUE(reply->ok());
  ASSERT_EQ(reply->results.size(), 3u);
  EXPECT_NE(reply->result<nfs4::RemoveResponse>(1), nullptr);
  EXPECT_NE(reply->result<nfs4::GetAttributesResponse>(2), nullptr);
  EXPECT_EQ(removed, 1);
  EXPECT_EQ(asked, 3);
  EXPECT_EQ(session->statistics().delays, 2u);
}

TEST_F(SessionTest, WhatIsDoneIsToldBeforeTheRestIsRepeated) {
  const auto session = start();
  int asked = 0;
  std::vector<std::string> seen;
  {
    const std::lock_guard lock(mds.mutex);
    mds.on_operation = [&](const nfs4::ArgumentOperation& operation) -> nfs4::ResultOperation {
      if (std::holds_alternative<nfs4::GetAttributesArguments>(operation)) {
        seen.push_back("asked");
        return nfs4::GetAttributesResponse(++asked < 3 ? Status::kDelay : Status::kBadHandle);
      }
      return nfs4::status_result(nfs4::operation_of(operation), Status::kOk);
    };
  }
  auto operations = remove();
  operations.emplace_back(nfs4::GetAttributesArguments{});
  const std::function told = [&](const CompoundReply& so_far) {
    EXPECT_EQ(so_far.status, Status::kDelay);
    EXPECT_NE(so_far.result<nfs4::RemoveResponse>(1), nullptr);
    EXPECT_EQ(so_far.result<nfs4::GetAttributesResponse>(2), nullptr);
    seen.push_back("told");
  };
  const auto reply = session->call(operations, {}, {.on_repetition = &told});
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->status, Status::kBadHandle);
  EXPECT_NE(reply->result<nfs4::RemoveResponse>(1), nullptr);
  EXPECT_EQ(seen, (std::vector<std::string>{"asked", "told", "asked", "told", "asked"}));
}

TEST_F(SessionTest, DelayOfSequenceKeepsTheSlotAndItsNumber) {
  const auto session = start();
  faults({Fault::kSequenceDelay, Fault::kSequenceDelay});
  ASSERT_TRUE(session->call(remove(), {}));
  const auto requests = look(&ScriptedMds::requests);
  ASSERT_EQ(requests.size(), 3u);
  EXPECT_EQ(requests[0], requests[2]);
}

TEST_F(SessionTest, ReturnDelayLeavesTheRepetitionToTheCaller) {
  const auto session = start();
  {
    const std::lock_guard lock(mds.mutex);
    mds.on_operation = [](const nfs4::ArgumentOperation& operation) {
      return nfs4::status_result(nfs4::operation_of(operation), Status::kDelay);
    };
  }
  const auto reply = session->call(remove(), {}, {.return_delay = true});
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->status, Status::kDelay);
}

TEST_F(SessionTest, FallsBackToMinorVersion1) {
  {
    const std::lock_guard lock(mds.mutex);
    mds.minor_version_max = 1;
  }
  const auto session = start();
  EXPECT_EQ(session->minor_version(), 1u);
  EXPECT_TRUE(session->call(remove(), {}));
}

TEST_F(SessionTest, ManyThreadsShareTheConnection) {
  const auto session = start();
  std::vector<std::thread> threads;
  std::atomic<int> good = 0;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) good += session->call(remove(), {}).has_value();
    });
  }
  std::this_thread::sleep_for(5ms);
  mds.drop_connections();
  std::this_thread::sleep_for(5ms);
  mds.lose_session();
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(good, 400);
}

TEST_F(SessionTest, CallbacksAreServedWhileNobodyCalls) {
  const auto session = start();
  std::this_thread::sleep_for(30ms);  // idle: the background thread watches
  const auto results = mds.call_back(nfs4::CallbackLayoutRecallArguments{});
  ASSERT_TRUE(results);
  EXPECT_EQ(results->status, Status::kOk);
  EXPECT_EQ(handlers.recalls, 1);
  EXPECT_TRUE(eventually([&] { return handlers.afterwards == 1; }));
  EXPECT_TRUE(mds.call_back(nfs4::kProcedureNull, {}).has_value());
}

TEST_F(SessionTest, CallbacksAreServedWhileACallWaits) {
  const auto session = start();
  faults({Fault::kSilence});
  std::thread caller([&] {
    EXPECT_FALSE(session->call(remove(), {}, {.deadline = std::chrono::steady_clock::now() + 300ms}));
  });
  std::this_thread::sleep_for(50ms);
  EXPECT_TRUE(mds.call_back(nfs4::CallbackLayoutRecallArguments{}));
  EXPECT_EQ(handlers.recalls, 1);
  caller.join();
}

TEST_F(SessionTest, ARepeatedCallbackIsAnsweredFromTheSlot) {
  const auto session = start();
  ASSERT_TRUE(mds.call_back(nfs4::CallbackLayoutRecallArguments{}, 1));
  const auto again = mds.call_back(nfs4::CallbackLayoutRecallArguments{}, 1);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->operations.size(), 2u);
  EXPECT_EQ(handlers.recalls, 1);
  const auto wrong = mds.call_back(nfs4::CallbackLayoutRecallArguments{}, 5);
  ASSERT_TRUE(wrong);
  EXPECT_EQ(wrong->status, Status::kSeqMisordered);
}

TEST_F(SessionTest, AnotherCallbackUnderTheSameNumberIsNotAnsweredForTheFirst) {
  const auto session = start();
  ASSERT_TRUE(mds.call_back(nfs4::CallbackLayoutRecallArguments{}, 1));
  nfs4::CallbackLayoutRecallArguments other;
  other.changed = true;
  const auto refused = mds.call_back(other, 1);
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->status, Status::kSeqFalseRetry);
  EXPECT_EQ(handlers.recalls, 1);
  const auto served = mds.call_back(other, 2);
  ASSERT_TRUE(served);
  EXPECT_EQ(served->status, Status::kOk);
  EXPECT_EQ(handlers.recalls, 2);
}

TEST_F(SessionTest, UnknownCallbacksAreNotSupportedAndUnknownDelegationsNotHeld) {
  const auto session = start();
  const auto unknown = mds.call_back(nfs4::CallbackWantsCancelledArguments{});
  const auto not_held = mds.call_back(nfs4::CallbackRecallArguments{});
  ASSERT_TRUE(unknown && not_held);
  EXPECT_EQ(unknown->status, Status::kNotSupp);
  EXPECT_EQ(not_held->status, Status::kBadStateid);
}

TEST_F(SessionTest, RecallSlotShrinksTheTable) {
  const auto session = start();
  ASSERT_TRUE(mds.call_back(nfs4::CallbackRecallSlotArguments{0}));
  EXPECT_TRUE(session->call(remove(), {}));
  EXPECT_EQ(look(&ScriptedMds::sequences).back().slot_id, 0u);
}

TEST_F(SessionTest, AReservedCallGoesThroughWhenAllOtherSlotsAreTaken) {
  {
    const std::lock_guard lock(mds.mutex);
    mds.slots = 2;
  }
  const auto session = start();
  faults({Fault::kSilence});
  auto waiting = session->begin(remove(), {});
  const CallOptions soon{.deadline = std::chrono::steady_clock::now() + 50ms};
  EXPECT_FALSE(session->call(remove(), {}, soon));
  EXPECT_TRUE(session->call(remove(), {}, {.urgency = Urgency::kReserved}));
}

TEST_F(SessionTest, BeginSendsAtOnceAndFinishWaits) {
  const auto session = start();
  auto in_flight = session->begin(remove(), {});
  EXPECT_TRUE(eventually([&] { return look(&ScriptedMds::executed) == 1; }));
  const auto reply = session->finish(std::move(in_flight));
  ASSERT_TRUE(reply);
  EXPECT_TRUE(reply->ok());
}

TEST_F(SessionTest, PostsCompleteWithoutAnybodyWaiting) {
  const auto session = start();
  std::atomic<int> completed = 0;
  for (int i = 0; i < 20; ++i) {
    session->post(remove(), {}, {}, [&](Result<CompoundReply> reply) { completed += reply && reply->ok(); });
  }
  EXPECT_TRUE(eventually([&] { return completed == 20; }));
  EXPECT_TRUE(session->drain_posts(std::chrono::steady_clock::now() + 5s));
}

TEST_F(SessionTest, AnAbandonedCallGivesItsSlotBackWhenTheReplyComes) {
  {
    const std::lock_guard lock(mds.mutex);
    mds.slots = 2;
  }
  const auto session = start();
  {
    const auto dropped = session->begin(remove(), {});
  }
  EXPECT_TRUE(session->call(remove(), {}, {.deadline = std::chrono::steady_clock::now() + 5s}));
}

TEST_F(SessionTest, AbortEndsEveryWait) {
  auto session = start();
  faults({Fault::kSilence, Fault::kSilence});
  std::vector<std::thread> threads;
  std::atomic<int> ended = 0;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      const auto reply = session->call(remove(), {});
      ended += !reply && reply.error().number() == ESHUTDOWN;
    });
  }
  std::this_thread::sleep_for(50ms);
  session->abort();
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(ended, 2);
  EXPECT_FALSE(session->call(remove(), {}));
}

TEST_F(SessionTest, AnInterruptedCallEndsWithinASecond) {
  const auto session = start();
  faults({Fault::kSilence});
  std::atomic<bool> interrupted = true;
  const auto reply = session->call(remove(), {}, {.interrupted = &interrupted});
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().number(), EINTR);
}

TEST_F(SessionTest, SoftGivesUpWhenTheServerIsSilent) {
  SessionOptions wanted = options();
  wanted.persistence = Persistence::kSoftError;
  wanted.timeout = 200ms;
  wanted.retransmissions = 1;
  const auto session = start(wanted);
  faults(std::deque<Fault>(20, Fault::kSilence));
  const auto reply = session->call(remove(), {});
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().number(), ETIMEDOUT);
}

TEST_F(SessionTest, HardOutlivesASilentServer) {
  SessionOptions wanted = options();
  wanted.timeout = 100ms;
  const auto session = start(wanted);
  faults({Fault::kSilence, Fault::kSilence});
  EXPECT_TRUE(session->call(remove(), {}));
  EXPECT_GE(session->statistics().reconnects, 1u);
}

TEST_F(SessionTest, TheEndDestroysSessionAndClient) {
  start().reset();
  EXPECT_TRUE(look(&ScriptedMds::session_destroyed));
  EXPECT_TRUE(look(&ScriptedMds::client_destroyed));
}

TEST_F(SessionTest, RevokedStateIsReclaimedOnceForEachRiseOfTheFlag) {
  const auto session = start();
  {
    const std::lock_guard lock(mds.mutex);
    mds.status_flags = nfs4::kSequenceExpiredSomeStateRevoked;
  }
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(session->call(remove(), {}));
  EXPECT_TRUE(eventually([&] { return handlers.reclaims == 2; }));
  ASSERT_TRUE(session->call(remove(), {}));
  EXPECT_EQ(handlers.reclaims, 2);
}

TEST_F(SessionTest, ARevokedLayoutCostsNeitherOpensNorOtherLayouts) {
  const auto session = start();
  {
    const std::lock_guard lock(mds.mutex);
    mds.status_flags = nfs4::kSequenceRecallableStateRevoked;
  }
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(session->call(remove(), {}));
  EXPECT_EQ(session->statistics().reconnects, 0u);
  EXPECT_EQ(handlers.lost, 0);
  EXPECT_EQ(handlers.reclaims, 1);
}

TEST_F(SessionTest, EachAnswerThatShowsRevokedStateIsSaidBeforeItIsGiven) {
  const auto session = start();
  ASSERT_TRUE(session->call(remove(), {}));
  EXPECT_EQ(handlers.doubts, 0);
  {
    const std::lock_guard lock(mds.mutex);
    mds.status_flags = nfs4::kSequenceRecallableStateRevoked;
  }
  for (int i = 0; i < 3; ++i) {
    const int before = handlers.doubts;
    ASSERT_TRUE(session->call(remove(), {}));
    EXPECT_GT(handlers.doubts, before);
  }
}

TEST_F(SessionTest, TheLeaseIsTheServersFromTheFirstAnswerOnAndAfterEachReconnection) {
  std::atomic<uint32_t> seconds = 5;
  {
    const std::lock_guard lock(mds.mutex);
    mds.on_operation = [&](const ScriptedMds::Operation& operation) -> ScriptedMds::Answer {
      if (!std::holds_alternative<nfs4::GetAttributesArguments>(operation))
        return nfs4::status_result(nfs4::operation_of(operation), Status::kOk);
      nfs4::GetAttributesResult result;
      result.attributes.lease_time = seconds;
      return nfs4::GetAttributesResponse(std::move(result));
    };
  }
  const auto session = start();
  EXPECT_EQ(session->lease(), 5s);
  EXPECT_LE(session->lease_end(), steady_now() + 5s);
  seconds = 2;  // started again with another configuration, on the same boot
  faults({Fault::kDropAfter});
  ASSERT_TRUE(session->call(remove(), {}));
  for (int i = 0; i < 200 && session->lease() != 2s; ++i) std::this_thread::sleep_for(10ms);
  EXPECT_EQ(session->lease(), 2s);
  EXPECT_LE(session->lease_end(), steady_now() + 2s);
}

TEST_F(SessionTest, RevokedStateidsAreFoundOutAndFreedUntilTheServerIsContent) {
  const auto numbered = [](uint8_t number) {
    nfs4::Stateid stateid;
    stateid.seqid = 1;
    stateid.other.fill(std::byte{number});
    return stateid;
  };
  // One is in force, two are revoked, one is not known any more.
  std::map<std::byte, Status> statuses = {{std::byte{1}, Status::kOk},
                                          {std::byte{2}, Status::kAdminRevoked},
                                          {std::byte{3}, Status::kExpired},
                                          {std::byte{4}, Status::kBadStateid}};
  handlers.in_doubt = {numbered(1), numbered(2), numbered(3), numbered(4)};
  int tests = 0;
  std::vector<nfs4::Stateid> freed;
  {
    const std::lock_guard lock(mds.mutex);
    mds.on_operation = [&](const ScriptedMds::Operation& operation) -> ScriptedMds::Answer {
      if (const auto* test = std::get_if<nfs4::TestStateidArguments>(&operation)) {
        ++tests;
        nfs4::TestStateidResult result;
        for (const nfs4::Stateid& stateid : test->stateids)
          result.statuses.push_back(statuses[stateid.other[0]]);
        return nfs4::TestStateidResponse(result);
      }
      if (const auto* free = std::get_if<nfs4::FreeStateidArguments>(&operation)) {
        freed.push_back(free->stateid);
        if (freed.size() == 2) mds.status_flags = 0;
      }
      return nfs4::status_result(nfs4::operation_of(operation), Status::kOk);
    };
  }
  const auto session = start();
  {
    const std::lock_guard lock(mds.mutex);
    mds.status_flags = nfs4::kSequenceRecallableStateRevoked;
  }
  ASSERT_TRUE(session->call(remove(), {}));
  EXPECT_TRUE(eventually([&] {
    const std::lock_guard lock(handlers.mutex);
    return handlers.in_doubt.size() == 1;
  }));
  ASSERT_TRUE(session->call(remove(), {}));
  std::this_thread::sleep_for(1200ms);  // longer than between two tests
  const std::lock_guard lock(mds.mutex);
  EXPECT_THAT(freed, testing::UnorderedElementsAre(numbered(2), numbered(3)));
  EXPECT_EQ(tests, 1);
  EXPECT_THAT(handlers.in_doubt, testing::ElementsAre(numbered(1)));
}

class CancelledCaller final : public Cancellation {
 public:
  bool requested() override { return ++asked > 1; }
  int asked = 0;
};

TEST_F(SessionTest, ACallEndsWhenWhoeverAskedWasKilled) {
  const auto session = start();
  faults({Fault::kSilence});
  CancelledCaller cancellation;
  {
    const CancellationScope scope(cancellation);
    const auto reply = session->call(remove(), {});
    ASSERT_FALSE(reply);
    EXPECT_EQ(reply.error().number(), EINTR);
  }
  EXPECT_FALSE(CancellationScope::cancelled());
  EXPECT_TRUE(session->call(remove(), {}));
}

TEST(Session, AServerThatIsNotThereIsNamed) {
  SessionOptions options;
  options.host = "127.0.0.1";
  options.port = 1;
  const auto session = Session::start(options, nullptr, nullptr);
  ASSERT_FALSE(session);
  EXPECT_EQ(session.error().number(), ECONNREFUSED);
  EXPECT_THAT(session.error().to_string(), HasSubstr("127.0.0.1:1"));
}

}  // namespace
}  // namespace pnfsrdma::initiator
