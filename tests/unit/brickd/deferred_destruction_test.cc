// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>

#include "server/brickd/limits.h"
#include "tests/unit/brickd/test_brick.h"
#include "tests/unit/brickd/test_client.h"
#include "tests/unit/rdma/held_queue_pair.h"

namespace pnfsrdma::brick {
namespace {

// A device that keeps the queue pairs of clients that have gone.
class BrickDestruction : public testing::Test {
 protected:
  static constexpr uint64_t kOther = 8;

  void SetUp() override {
    ASSERT_EQ(brick.claim().status, Status::kOk);
    ASSERT_EQ(brick.alloc(0, 1), Status::kOk);
    ASSERT_EQ(brick.open_session(), Status::kOk);
    ASSERT_EQ(brick.open_session(kOther, 2), Status::kOk);
  }
  // Whatever a test expects, its brick must come to an end.
  void TearDown() override { hold->release(); }
  std::unique_ptr<TestClient> connect(uint8_t ticket) {
    auto client = TestClient::connect(brick.transport(), brick.address(), ticket_of(ticket));
    return client ? std::move(*client) : nullptr;
  }

  // Until the brick is about to destroy this client's queue pair.
  void expel(std::unique_ptr<TestClient> client) {
    ASSERT_TRUE(client && client->hello());
    ASSERT_EQ(brick.close_session(), Status::kOk);
    hold->wait_until_asked();
  }

  std::shared_ptr<rdma::testing::Hold> hold = std::make_shared<rdma::testing::Hold>();
  TestBrick brick{"memory", {}, nullptr, {}, [this](TestBrick::Transport inner) {
                    return std::make_unique<rdma::testing::WrappedTransport>(std::move(inner),
                                                                             rdma::testing::held_by(hold));
                  }};
};

TEST_F(BrickDestruction, AQueuePairTheDeviceKeepsHoldsUpNobodyElse) {
  expel(connect(1));
  auto other = std::async(std::launch::async, [&] {
    const auto client = connect(2);
    const bool heard = client && client->hello();
    return heard && brick.expose(0, kBlock, true, kOther).status == Status::kOk;
  });
  EXPECT_EQ(other.wait_for(std::chrono::seconds(8)), std::future_status::ready);
  hold->release();
  EXPECT_TRUE(other.get());
}

TEST_F(BrickDestruction, TheBrickEndsWhenTheDeviceLetsGo) {
  expel(connect(1));
  auto end = std::async(std::launch::async, [&] { brick.stop(); });
  EXPECT_EQ(end.wait_for(std::chrono::milliseconds(100)), std::future_status::timeout);
  hold->release();
  EXPECT_EQ(end.wait_for(std::chrono::seconds(8)), std::future_status::ready);
}

TEST_F(BrickDestruction, AClientWhoseQueuePairsTheDeviceKeepsHasSoManyAndNoMore) {
  for (size_t i = 0; i < kConnectionsPerSessionMax; ++i) ASSERT_NE(connect(1), nullptr) << i;
  const auto refused = TestClient::connect(brick.transport(), brick.address(), ticket_of(1));
  ASSERT_FALSE(refused);
  EXPECT_EQ(reject_reason(refused.error()), RejectReason::kBusy) << refused.error().to_string();
  EXPECT_NE(connect(2), nullptr) << "others are not hurt";
  hold->release();
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!connect(1)) ASSERT_LT(std::chrono::steady_clock::now(), limit);
}

}  // namespace
}  // namespace pnfsrdma::brick
