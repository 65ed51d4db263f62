// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "shared/initiator/session/session.h"
#include "tests/unit/initiator/session/scripted_mds.h"

// A server with several hosts: the session is wherever one answers.
namespace pnfsrdma::initiator {
namespace {

using namespace std::chrono_literals;

class HostsTest : public testing::Test {
 protected:
  static constexpr in_addr_t kOther = INADDR_LOOPBACK + 1;

  SessionOptions options() const {
    SessionOptions options;
    options.host = "127.0.0.1";
    options.other_hosts = {"127.0.0.2"};
    options.port = first->port;
    options.owner = "test";
    options.persistence = Persistence::kSoft;
    options.timeout = 2s;
    options.retransmissions = 1;
    return options;
  }
  std::unique_ptr<ScriptedMds> start_other() const {
    return std::make_unique<ScriptedMds>(kOther, first->port);
  }
  static Result<CompoundReply> call(Session& session) {
    return session.call({nfs4::PutRootFileHandleArguments{}, nfs4::RemoveArguments{"x"}}, {});
  }
  // Then a silence of a second is a long one.
  void set_lease(uint32_t seconds) {
    const std::lock_guard lock(first->mutex);
    first->on_operation = [seconds](const ScriptedMds::Operation& operation) -> ScriptedMds::Answer {
      if (!std::holds_alternative<nfs4::GetAttributesArguments>(operation))
        return nfs4::status_result(nfs4::operation_of(operation), nfs4::Status::kOk);
      nfs4::GetAttributesResult result;
      result.attributes.lease_time = seconds;
      return nfs4::GetAttributesResponse(std::move(result));
    };
  }
  template <typename T>
  static T look(ScriptedMds& mds, T ScriptedMds::* member) {
    const std::lock_guard lock(mds.mutex);
    return mds.*member;
  }

  std::unique_ptr<ScriptedMds> first = std::make_unique<ScriptedMds>();
};

TEST_F(HostsTest, AMountBeginsAtTheHostThatIsThere) {
  const auto other = start_other();
  const SessionOptions wanted = options();
  first.reset();
  const auto session = Session::start(wanted, nullptr, nullptr);
  ASSERT_TRUE(session) << session.error().to_string();
  EXPECT_TRUE(call(**session));
  EXPECT_EQ((*session)->server(), "127.0.0.1,127.0.0.2:" + std::to_string(wanted.port));
}

TEST_F(HostsTest, WhoTakesOverIsFoundAndTheWayBackToo) {
  const SessionOptions wanted = options();
  const auto session = Session::start(wanted, nullptr, nullptr);
  ASSERT_TRUE(session) << session.error().to_string();
  auto other = start_other();
  first.reset();
  EXPECT_TRUE(call(**session));
  EXPECT_GE(look(*other, &ScriptedMds::executed), 1u);
  first = std::make_unique<ScriptedMds>(INADDR_LOOPBACK, wanted.port);
  other.reset();
  EXPECT_TRUE(call(**session));
  EXPECT_GE(look(*first, &ScriptedMds::executed), 1u);
}

TEST_F(HostsTest, AHostThatTakesConnectionsAndSaysNothingIsLeft) {
  const auto session = Session::start(options(), nullptr, nullptr);
  ASSERT_TRUE(session) << session.error().to_string();
  const auto other = start_other();
  {
    const std::lock_guard lock(first->mutex);
    first->silent = true;
  }
  EXPECT_TRUE(call(**session));
  EXPECT_GE(look(*other, &ScriptedMds::executed), 1u);
  EXPECT_EQ(look(*first, &ScriptedMds::connections), 1u) << "the same host was asked again first";
}

TEST_F(HostsTest, AnotherServerIsNoHostOfThisOne) {
  const auto session = Session::start(options(), nullptr, nullptr);
  ASSERT_TRUE(session) << session.error().to_string();
  const auto other = start_other();
  {
    const std::lock_guard lock(other->mutex);
    other->owner = "another server";
  }
  first.reset();
  EXPECT_FALSE(call(**session));
  EXPECT_GT(look(*other, &ScriptedMds::clients_made), 0u);
  EXPECT_EQ(look(*other, &ScriptedMds::sessions_made), 0u);
}

// Of its lease nothing is left otherwise: the renewal is a call that nobody waits for.
TEST_F(HostsTest, AMountThatDoesNothingLeavesASilentHost) {
  set_lease(3);
  const auto session = Session::start(options(), nullptr, nullptr);
  ASSERT_TRUE(session) << session.error().to_string();
  const auto other = start_other();
  {
    const std::lock_guard lock(first->mutex);
    first->silent = true;
  }
  const SteadyTime until = steady_now() + 6s;
  while (steady_now() < until && look(*other, &ScriptedMds::sessions_made) == 0) sleep_for(50ms);
  EXPECT_EQ(look(*other, &ScriptedMds::sessions_made), 1u);
  EXPECT_EQ((*session)->host_in_use(), "127.0.0.2");
}

TEST_F(HostsTest, AHostThatAnswersOthersMayTakeItsTime) {
  SessionOptions wanted = options();
  wanted.timeout = 20s;
  wanted.persistence = Persistence::kHard;
  set_lease(3);
  const auto session = Session::start(wanted, nullptr, nullptr);
  ASSERT_TRUE(session) << session.error().to_string();
  const auto other = start_other();
  {
    const std::lock_guard lock(first->mutex);
    first->faults = {ScriptedMds::Fault::kSilence};
  }
  const Result<CompoundReply> slow =
      (*session)->call({nfs4::PutRootFileHandleArguments{}}, {}, {.deadline = steady_now() + 4s});
  ASSERT_FALSE(slow);
  EXPECT_EQ(slow.error().number(), ETIMEDOUT);
  EXPECT_EQ(look(*first, &ScriptedMds::connections), 1u);
  EXPECT_EQ(look(*other, &ScriptedMds::connections), 0u);
}

// What others wait for is not for his eyes, and what he speaks is not what the server speaks.
TEST_F(HostsTest, AStrangerIsToldNothingAndChangesNothing) {
  SessionOptions wanted = options();
  const auto session = Session::start(wanted, nullptr, nullptr);
  ASSERT_TRUE(session) << session.error().to_string();
  const auto other = start_other();
  {
    const std::lock_guard lock(other->mutex);
    other->owner = "another server";
    other->minor_version_max = 1;
  }
  first.reset();
  EXPECT_FALSE(call(**session));
  EXPECT_EQ(look(*other, &ScriptedMds::executed), 0u);
  first = std::make_unique<ScriptedMds>(INADDR_LOOPBACK, wanted.port);
  EXPECT_TRUE(call(**session));
  EXPECT_EQ((*session)->minor_version(), 2u);
}

TEST_F(HostsTest, AServerThatWasMadeAnewIsTakenWhereAllHostsAreIt) {
  SessionOptions wanted = options();
  wanted.persistence = Persistence::kHard;
  auto other = start_other();
  const auto session = Session::start(wanted, nullptr, nullptr);
  ASSERT_TRUE(session) << session.error().to_string();
  first.reset();
  other.reset();
  first = std::make_unique<ScriptedMds>(INADDR_LOOPBACK, wanted.port);
  other = start_other();
  for (ScriptedMds* mds : {first.get(), other.get()}) {
    const std::lock_guard lock(mds->mutex);
    mds->owner = "the new one";
  }
  EXPECT_TRUE((*session)->call({nfs4::PutRootFileHandleArguments{}}, {}, {.deadline = steady_now() + 20s}));
}

TEST_F(HostsTest, AMountBeginsWhereOneHostIsJustStarting) {
  SessionOptions wanted = options();
  {
    const std::lock_guard lock(first->mutex);
    first->resets = 2;
  }
  const auto session = Session::start(wanted, nullptr, nullptr);  // the other one refuses
  ASSERT_TRUE(session) << session.error().to_string();
  EXPECT_EQ((*session)->host_in_use(), "127.0.0.1");
}

TEST(Silence, IsNotBorneForLongWhereAnotherHostMayAnswer) {
  SessionOptions options;
  EXPECT_EQ(options.silence(), options.timeout);
  options.other_hosts = {"b"};
  EXPECT_EQ(options.silence(), 5s);
  options.timeout = 1s;
  EXPECT_EQ(options.silence(), 1s);
}

}  // namespace
}  // namespace pnfsrdma::initiator
