// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>

#include "tests/unit/brickd/pools.h"
#include "tests/unit/brickd/test_brick.h"
#include "tests/unit/brickd/test_client.h"

namespace pnfsrdma::brick {
namespace {

using Connected = Result<std::unique_ptr<TestClient>>;

// One connection of a client takes another's place while a flush keeps a handle of the old one from dying.
class BrickReplacement : public testing::Test {
 protected:
  static constexpr auto kAWhile = std::chrono::milliseconds(200);
  static constexpr auto kLong = std::chrono::seconds(8);

  void SetUp() override {
    ASSERT_EQ(brick.claim().status, Status::kOk);
    ASSERT_EQ(brick.alloc(0, 2), Status::kOk);
    ASSERT_EQ(brick.open_session(), Status::kOk);
    auto connected = connect(1);
    ASSERT_TRUE(connected) << connected.error().to_string();
    old = std::move(*connected);
    ASSERT_TRUE(old->hello());
    grant = brick.expose(0, kBlock).grants.at(0);
    gate.shut();
    ASSERT_TRUE(
        old->queue_pair().post_flush(1, {grant.address, 4096, grant.handle}, rdma::FlushLevel::kPersistent));
    old->queue_pair().submit();
    gate.wait_for_flush();
  }
  void TearDown() override { gate.open(); }

  Connected connect(uint8_t ticket) {
    return TestClient::connect(brick.transport(), brick.address(), ticket_of(ticket));
  }
  std::future<Connected> knock(uint8_t ticket = 1) {
    return std::async(std::launch::async, [this, ticket] { return connect(ticket); });
  }
  static void expect_refused(std::future<Connected> knocked, RejectReason reason) {
    ASSERT_EQ(knocked.wait_for(kLong), std::future_status::ready);
    const Connected connected = knocked.get();
    ASSERT_FALSE(connected);
    EXPECT_EQ(reject_reason(connected.error()), reason) << connected.error().to_string();
  }

  HeldPersistence::Gate gate;
  SystemRandom random;
  TestBrick brick{"iwarp", {}, make_pool(std::make_unique<HeldPersistence>(gate), random)};
  std::unique_ptr<TestClient> old;
  Grant grant;
};

TEST_F(BrickReplacement, NewConnectionIsAnsweredWhenTheOldHandlesAreDead) {
  auto knocked = knock();
  EXPECT_EQ(knocked.wait_for(kAWhile), std::future_status::timeout);
  EXPECT_TRUE(old->ends());
  gate.open();
  const Connected connected = knocked.get();
  ASSERT_TRUE(connected) << connected.error().to_string();
  const auto hello = (*connected)->hello();
  ASSERT_TRUE(hello);
  EXPECT_EQ(hello->connection, 2u);
  EXPECT_EQ(hello->grants.size(), 1u);
}

TEST_F(BrickReplacement, ConnectionThatWasLostIsReplacedNoSooner) {
  old.reset();
  auto knocked = knock();
  EXPECT_EQ(knocked.wait_for(kAWhile), std::future_status::timeout);
  gate.open();
  EXPECT_TRUE(knocked.get());
}

TEST_F(BrickReplacement, OfTwoThatWaitTheNewerIsLetIn) {
  auto second = knock();
  ASSERT_TRUE(old->ends());  // so it has been seen
  auto third = knock();
  expect_refused(std::move(second), RejectReason::kBusy);
  EXPECT_EQ(third.wait_for(kAWhile), std::future_status::timeout);
  gate.open();
  const Connected connected = third.get();
  ASSERT_TRUE(connected) << connected.error().to_string();
  EXPECT_TRUE((*connected)->hello());
}

TEST_F(BrickReplacement, SessionThatIsClosedMeanwhileLetsNobodyIn) {
  auto knocked = knock();
  ASSERT_TRUE(old->ends());
  auto closed = std::async(std::launch::async, [&] { return brick.close_session(); });
  expect_refused(std::move(knocked), RejectReason::kTicket);
  EXPECT_EQ(closed.wait_for(kAWhile), std::future_status::timeout);
  gate.open();
  EXPECT_EQ(closed.get(), Status::kOk);
}

TEST_F(BrickReplacement, GrantIsWithdrawnNoSoonerThanTheLostConnectionsHandleIsDead) {
  auto knocked = knock();
  ASSERT_TRUE(old->ends());
  auto withdrawn = std::async(std::launch::async, [&] { return brick.withdraw(grant.grant); });
  EXPECT_EQ(withdrawn.wait_for(kAWhile), std::future_status::timeout);
  gate.open();
  EXPECT_EQ(withdrawn.get(), Status::kOk);
  EXPECT_TRUE(knocked.get());
}

TEST_F(BrickReplacement, GrantOfAClosedSessionIsWithdrawnNoSoonerThanItsHandleIsDead) {
  auto closed = std::async(std::launch::async, [&] { return brick.close_session(); });
  ASSERT_TRUE(old->ends());
  auto withdrawn = std::async(std::launch::async, [&] { return brick.withdraw(grant.grant); });
  EXPECT_EQ(withdrawn.wait_for(kAWhile), std::future_status::timeout);
  gate.open();
  EXPECT_EQ(withdrawn.get(), Status::kOk);
  EXPECT_EQ(closed.get(), Status::kOk);
}

TEST_F(BrickReplacement, TicketThatIsChangedMeanwhileLetsNobodyIn) {
  auto knocked = knock();
  ASSERT_TRUE(old->ends());
  ASSERT_EQ(brick.open_session(kClient, 3), Status::kOk);
  gate.open();
  expect_refused(std::move(knocked), RejectReason::kTicket);
  EXPECT_TRUE(connect(3));
}

TEST_F(BrickReplacement, BrickEndsWhileSomebodyWaits) {
  auto knocked = knock();
  ASSERT_TRUE(old->ends());
  std::thread opener([&] {
    std::this_thread::sleep_for(kAWhile);
    gate.open();
  });
  brick.stop();
  opener.join();
  EXPECT_FALSE(knocked.get());
}

}  // namespace
}  // namespace pnfsrdma::brick
