// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <thread>

#include "server/brickd/limits.h"
#include "tests/unit/brickd/test_brick.h"
#include "tests/unit/brickd/test_client.h"

namespace pnfsrdma::brick {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// A device that takes its time for each registration, and for the end of each.
class SlowTransport final : public rdma::Transport {
 public:
  SlowTransport(std::unique_ptr<Transport> inner, std::atomic<int>& microseconds)
      : inner_(std::move(inner)), microseconds_(microseconds) {}

  std::string name() const override { return inner_->name(); }
  std::shared_ptr<rdma::ProtectionDomain> make_protection_domain() override {
    return inner_->make_protection_domain();
  }
  Result<std::unique_ptr<rdma::Region>> register_region(std::shared_ptr<rdma::ProtectionDomain> domain,
                                                        MutableByteSpan memory, rdma::Access access,
                                                        rdma::Flusher* flusher) override {
    TRY_ASSIGN(auto region, inner_->register_region(std::move(domain), memory, access, flusher));
    take_time(microseconds_);
    return std::make_unique<SlowRegion>(std::move(region), microseconds_);
  }
  Result<rdma::Connected> connect(const std::string& address, std::shared_ptr<rdma::ProtectionDomain> domain,
                                  const rdma::ConnectOptions& options) override {
    return inner_->connect(address, std::move(domain), options);
  }
  Result<std::unique_ptr<rdma::Listener>> listen(
      const std::string& address,
      std::function<void(std::unique_ptr<rdma::ConnectionRequest>)> on_request) override {
    return inner_->listen(address, std::move(on_request));
  }

 private:
  static void take_time(int microseconds) {
    if (microseconds > 0) std::this_thread::sleep_for(std::chrono::microseconds(microseconds));
  }
  class SlowRegion final : public rdma::Region {
   public:
    SlowRegion(std::unique_ptr<rdma::Region> inner, std::atomic<int>& microseconds)
        : inner_(std::move(inner)), microseconds_(microseconds) {}
    ~SlowRegion() override { take_time(microseconds_); }
    MutableByteSpan memory() const override { return inner_->memory(); }
    uint32_t local_key() const override { return inner_->local_key(); }
    rdma::RemoteSlice remote() const override { return inner_->remote(); }

   private:
    std::unique_ptr<rdma::Region> inner_;
    std::atomic<int>& microseconds_;
  };

  std::unique_ptr<rdma::Transport> inner_;
  std::atomic<int>& microseconds_;
};

// A client with many grants connects, goes and comes back; the brick has one loop for it and everybody else.
class BrickReconnect : public testing::Test {
 protected:
  static constexpr uint64_t kGrants = 1500;

  void SetUp() override {
    ASSERT_EQ(brick.claim().status, Status::kOk);
    ASSERT_EQ(brick.alloc(0, 2), Status::kOk);
    ASSERT_EQ(brick.open_session(), Status::kOk);
  }
  // While nobody is connected nothing is registered.
  std::vector<uint64_t> expose_many() {
    std::vector<uint64_t> grants;
    for (uint64_t i = 0; i < kGrants; ++i)
      grants.push_back(brick.expose(i % 512 * 4096, 4096).grants.at(0).grant);
    return grants;
  }
  std::future<std::unique_ptr<TestClient>> connect() {
    return std::async(std::launch::async, [this] {
      auto made = TestClient::connect(*raw, brick.address(), ticket_of(1));
      EXPECT_TRUE(made) << made.error().to_string();
      return made ? std::move(*made) : nullptr;
    });
  }
  // How long the slowest of the control calls took that were made until `others` is ready.
  template <typename T>
  milliseconds slowest_call(std::future<T>& others) {
    milliseconds slowest{0};
    while (others.wait_for(milliseconds(1)) != std::future_status::ready) {
      const auto begun = Clock::now();
      EXPECT_EQ(brick.call(&Control::identify).status, Status::kOk);
      slowest = std::max(slowest, std::chrono::duration_cast<milliseconds>(Clock::now() - begun));
    }
    return slowest;
  }

  std::atomic<int> microseconds{0};
  rdma::Transport* raw = nullptr;
  TestBrick brick{"memory", {}, nullptr, {}, [this](TestBrick::Transport inner) {
                    raw = inner.get();
                    return std::make_unique<SlowTransport>(std::move(inner), microseconds);
                  }};
};

TEST_F(BrickReconnect, ControlCallsAreAnsweredWhileItsGrantsAreRegistered) {
  expose_many();
  microseconds = 1000;
  auto connecting = connect();
  const milliseconds slowest = slowest_call(connecting);
  EXPECT_LT(slowest, milliseconds(1000)) << "all together take 1500 ms";
  const auto client = connecting.get();
  ASSERT_TRUE(client);
  EXPECT_EQ(client->hello()->grants.size(), kGrants);
}

TEST_F(BrickReconnect, ControlCallsAreAnsweredWhileItsHandlesDie) {
  expose_many();
  const auto client = connect().get();
  ASSERT_TRUE(client && client->hello());
  microseconds = 1000;
  auto closing = std::async(std::launch::async, [this] { return brick.close_session(); });
  EXPECT_LT(slowest_call(closing), milliseconds(1000)) << "all together take 1500 ms";
  EXPECT_EQ(closing.get(), Status::kOk);
  EXPECT_EQ(brick.call(&Control::statistics).grants, 0U);
  EXPECT_EQ(brick.call(&Control::unmap, BlocksArguments{kEpoch, {{{0, 2}}}}).status, Status::kOk)
      << "no block is pinned any more";
}

TEST_F(BrickReconnect, WhatComesAndGoesBetweenTwoSlicesIsInTheHelloOrNot) {
  const std::vector<uint64_t> grants = expose_many();
  microseconds = 1000;
  auto connecting = connect();
  EXPECT_EQ(connecting.wait_for(milliseconds(300)), std::future_status::timeout);
  // Of those that are registered and of those that are not: they are taken from the back of their order.
  const auto [least, most] = std::ranges::minmax(grants);
  EXPECT_EQ(brick.withdraw(least), Status::kOk);
  EXPECT_EQ(brick.withdraw(most), Status::kOk);
  const ExposeResult fresh = brick.expose(kBlock, 4096);
  ASSERT_EQ(fresh.status, Status::kOk);
  EXPECT_EQ(fresh.connection, 0U) << "its handle comes with the hello";
  ASSERT_EQ(connecting.wait_for(milliseconds(0)), std::future_status::timeout) << "too late for the test";
  const auto client = connecting.get();
  ASSERT_TRUE(client);
  const auto hello = client->hello();
  ASSERT_TRUE(hello);
  std::vector<uint64_t> greeted;
  for (const HelloGrant& grant : hello->grants) greeted.push_back(grant.grant);
  EXPECT_EQ(greeted.size(), kGrants - 1);
  EXPECT_EQ(std::ranges::count(greeted, least) + std::ranges::count(greeted, most), 0);
  EXPECT_EQ(std::ranges::count(greeted, fresh.grants.at(0).grant), 1);
}

TEST_F(BrickReconnect, SessionThatIsClosedBetweenTwoSlicesLetsNobodyIn) {
  expose_many();
  microseconds = 1000;
  auto refused = std::async(std::launch::async,
                            [this] { return TestClient::connect(*raw, brick.address(), ticket_of(1)); });
  EXPECT_EQ(refused.wait_for(milliseconds(300)), std::future_status::timeout);
  EXPECT_EQ(brick.close_session(), Status::kOk);
  const auto answer = refused.get();
  ASSERT_FALSE(answer);
  EXPECT_EQ(reject_reason(answer.error()), RejectReason::kTicket);
}

TEST_F(BrickReconnect, BrickEndsBetweenTwoSlices) {
  expose_many();
  microseconds = 1000;
  auto refused = std::async(std::launch::async,
                            [this] { return TestClient::connect(*raw, brick.address(), ticket_of(1)); });
  EXPECT_EQ(refused.wait_for(milliseconds(100)), std::future_status::timeout);
  brick.stop();
  EXPECT_FALSE(refused.get());
}

TEST_F(BrickReconnect, WhoConnectsAgainAndAgainWithManyGrantsIsPutOffForLonger) {
  expose_many();
  milliseconds all{0};
  milliseconds last{0};
  for (int i = 0; i < 9; ++i) {
    const auto begun = Clock::now();
    ASSERT_TRUE(connect().get());
    last = std::chrono::duration_cast<milliseconds>(Clock::now() - begun);
    all += last;
  }
  // The first at once, then 10, 20, 40, … 640, and 1000.
  EXPECT_GE(last, kPutOffLongest);
  EXPECT_GE(all, milliseconds(10 + 20 + 40 + 80 + 160 + 320 + 640 + 1000));
}

TEST_F(BrickReconnect, WhoHasFewGrantsIsNotPutOff) {
  ASSERT_EQ(brick.expose(0, 4096).status, Status::kOk);
  const auto begun = Clock::now();
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(connect().get());
  EXPECT_LT(Clock::now() - begun, milliseconds(5000)) << "it would be 15 seconds";
}

}  // namespace
}  // namespace pnfsrdma::brick
