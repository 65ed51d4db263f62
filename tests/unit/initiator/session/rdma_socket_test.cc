// SPDX-License-Identifier: Apache-2.0
#include "shared/initiator/session/rdma_socket.h"

#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "shared/base/random.h"
#include "shared/rdma/iwarp/transport.h"
#include "shared/rpc_rdma/listener.h"
#include "tests/unit/rdma/held_queue_pair.h"

namespace pnfsrdma::initiator {
namespace {

// A server that only lets in.
class RdmaSocketTest : public testing::Test {
 protected:
  RdmaSocketTest() {
    auto listener = rpc_rdma::Listener::listen(loop, transport, "127.0.0.1:0", {}, {}, destruction);
    CHECK(listener.has_value());
    address = (*listener)->address();
    thread = std::thread([this, listener = std::shared_ptr(*std::move(listener))] { loop.run(); });
  }
  ~RdmaSocketTest() override {
    loop.stop();
    thread.join();
  }

  SystemRandom random;
  SystemClock clock;
  DeferredDestruction destruction{"destroy-test"};
  EventLoop loop{clock};
  std::shared_ptr<rdma::Transport> transport = rdma::iwarp::make_transport({}, random);
  std::string address;
  std::thread thread;
};

TEST_F(RdmaSocketTest, AQueuePairTheDeviceKeepsHoldsUpNobody) {
  const auto hold = std::make_shared<rdma::testing::Hold>();
  const std::shared_ptr<rdma::Transport> held = std::make_shared<rdma::testing::WrappedTransport>(
      rdma::iwarp::make_transport({}, random), rdma::testing::Wrapping(), rdma::testing::held_by(hold));
  SessionSocket::Counters counters;
  auto socket = SessionRdmaSocket::connect({&held, 1}, *rpc::SocketAddress::parse(address),
                                           Milliseconds(8000), 65536, counters, destruction);
  ASSERT_TRUE(socket) << socket.error().to_string();
  auto last = std::async(std::launch::async, [&] { socket->reset(); });
  EXPECT_EQ(last.wait_for(std::chrono::seconds(8)), std::future_status::ready);
  hold->wait_until_asked();
  hold->release();
}

}  // namespace
}  // namespace pnfsrdma::initiator
