// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <mutex>
#include <thread>
#include <vector>

#include "shared/initiator/cancellation.h"
#include "shared/initiator/session/session.h"
#include "tests/unit/initiator/session/scripted_mds.h"

namespace pnfsrdma::initiator {
namespace {

class CountingRecovery final : public RecoveryHandler {
 public:
  void layouts_lost() override { ++lost; }
  void reclaim() override {
    ++reclaims;
    std::this_thread::sleep_for(takes.load());
  }
  void reopen() override { ++reopens; }
  std::atomic<int> lost = 0, reclaims = 0, reopens = 0;
  std::atomic<Milliseconds> takes = Milliseconds(0);
};

class RenewOpensTest : public testing::Test {
 protected:
  explicit RenewOpensTest(uint32_t slots = 8) {
    mds_.slots = slots;
    SessionOptions options{.host = "127.0.0.1", .port = mds_.port, .owner = "opens"};
    options.delay_first = kDelay;
    session_ = std::move(*Session::start(options, nullptr, &recovery_));
    recovery_.lost = recovery_.reclaims = recovery_.reopens = 0;  // a new client begins with a reclaim
  }

  // While a fault is left for it, a call has not reached the server.
  void wait_for_faults() {
    for (bool left = true; left;) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      const std::lock_guard lock(mds_.mutex);
      left = !mds_.faults.empty();
    }
  }

  static constexpr Milliseconds kDelay{200};
  ScriptedMds mds_;
  CountingRecovery recovery_;
  std::unique_ptr<Session> session_;
};

TEST_F(RenewOpensTest, TheyAreMadeGoodBeforeTheCallerGoesOn) {
  const SessionStatistics before = session_->statistics();
  session_->renew_opens();
  EXPECT_EQ(recovery_.reclaims, 1);
  EXPECT_EQ(recovery_.reopens, 1);
  EXPECT_EQ(session_->statistics().new_sessions, before.new_sessions);
  EXPECT_TRUE(session_->call({nfs4::PutRootFileHandleArguments{}}, {}));
}

// What is forgotten here while the server counts on it is never returned, and recalls of it last for a lease.
TEST_F(RenewOpensTest, LayoutsStay) {
  session_->renew_opens();
  EXPECT_EQ(recovery_.lost, 0);
}

TEST_F(RenewOpensTest, OnceASecondAndOnceForAllWhoWait) {
  const SteadyTime began = steady_now();
  session_->renew_opens();
  std::vector<std::thread> callers;
  for (int i = 0; i < 8; ++i) callers.emplace_back([&] { session_->renew_opens(); });
  for (auto& caller : callers) caller.join();
  EXPECT_EQ(recovery_.reclaims, 2);
  EXPECT_GE(steady_now() - began, std::chrono::seconds(1));
}

// The connection is lost on purpose, and the session stays: so do the calls that are under way in it.
TEST_F(RenewOpensTest, ACallThatTheServerPutsOffMeanwhileIsRepeatedAtOnce) {
  recovery_.takes = 3 * kDelay;
  {
    const std::lock_guard lock(mds_.mutex);
    mds_.faults = {ScriptedMds::Fault::kSequenceDelay};
  }
  const SteadyTime began = steady_now();
  std::thread caller([&] { EXPECT_TRUE(session_->call({nfs4::PutRootFileHandleArguments{}}, {})); });
  wait_for_faults();
  session_->renew_opens();
  caller.join();
  EXPECT_LT(steady_now() - began, std::chrono::seconds(5));
}

class RenewOpensOnTwoSlotsTest : public RenewOpensTest {
 protected:
  RenewOpensOnTwoSlotsTest() : RenewOpensTest(2) {}
};

TEST_F(RenewOpensOnTwoSlotsTest, CallsThatHoldEverySlotGetTheirAnswers) {
  std::vector<std::thread> callers;
  for (const Urgency urgency : {Urgency::kNormal, Urgency::kReserved}) {
    {
      const std::lock_guard lock(mds_.mutex);
      mds_.faults = {ScriptedMds::Fault::kSilence};
    }
    callers.emplace_back([&, urgency] {
      EXPECT_TRUE(session_->call({nfs4::PutRootFileHandleArguments{}}, {}, {.urgency = urgency}));
    });
    wait_for_faults();
  }
  const SteadyTime began = steady_now();
  session_->renew_opens();
  for (auto& caller : callers) caller.join();
  EXPECT_LT(steady_now() - began, std::chrono::seconds(5));
  EXPECT_EQ(recovery_.reopens, 1);
}

class KilledSoon final : public Cancellation {
 public:
  bool requested() override { return ++asked_ > 1; }

 private:
  int asked_ = 0;
};

TEST_F(RenewOpensTest, WhoWaitsAndIsKilledWaitsNoLonger) {
  session_->renew_opens();
  KilledSoon cancellation;
  const CancellationScope scope(cancellation);
  session_->renew_opens();
  EXPECT_EQ(recovery_.reclaims, 1);
}

class HeldStateids final : public RecoveryHandler {
 public:
  void layouts_lost() override { ADD_FAILURE() << "the client is the same"; }
  void reclaim() override {}
  std::vector<nfs4::Stateid> stateids_in_doubt() override {
    const std::lock_guard lock(mutex_);
    return held_;
  }
  void stateid_gone(const nfs4::Stateid& stateid) override {
    const std::lock_guard lock(mutex_);
    std::erase(held_, stateid);
  }
  nfs4::Stateid hold(uint8_t number) {
    nfs4::Stateid stateid;
    stateid.other.fill(std::byte{number});
    const std::lock_guard lock(mutex_);
    return held_.emplace_back(stateid);
  }

 private:
  std::mutex mutex_;
  std::vector<nfs4::Stateid> held_;
};

// It may have been started again, and have kept some of it.
TEST(NewSession, TheServerIsAskedOnceWhichLayoutsItHasKept) {
  ScriptedMds mds;
  HeldStateids layouts;
  const nfs4::Stateid kept = layouts.hold(1);
  layouts.hold(2);
  int tests = 0;
  {
    const std::lock_guard lock(mds.mutex);
    mds.on_operation = [&](const ScriptedMds::Operation& operation) -> ScriptedMds::Answer {
      const auto* test = std::get_if<nfs4::TestStateidArguments>(&operation);
      if (test == nullptr) return nfs4::status_result(nfs4::operation_of(operation), nfs4::Status::kOk);
      ++tests;
      nfs4::TestStateidResult result;
      for (const nfs4::Stateid& stateid : test->stateids)
        result.statuses.push_back(stateid == kept ? nfs4::Status::kOk : nfs4::Status::kBadStateid);
      return nfs4::TestStateidResponse(result);
    };
  }
  const auto session = std::move(
      *Session::start({.host = "127.0.0.1", .port = mds.port, .owner = "layouts"}, nullptr, &layouts));
  ASSERT_TRUE(session->call({nfs4::PutRootFileHandleArguments{}}, {}));
  mds.lose_session();
  ASSERT_TRUE(session->call({nfs4::PutRootFileHandleArguments{}}, {}));
  for (int i = 0; i < 500 && layouts.stateids_in_doubt().size() > 1; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(layouts.stateids_in_doubt(), std::vector{kept});
  ASSERT_TRUE(session->call({nfs4::PutRootFileHandleArguments{}}, {}));
  const std::lock_guard lock(mds.mutex);
  EXPECT_EQ(tests, 1);
}

}  // namespace
}  // namespace pnfsrdma::initiator
