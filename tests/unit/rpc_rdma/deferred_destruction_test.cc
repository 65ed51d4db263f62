// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/rdma/held_queue_pair.h"
#include "tests/unit/rpc_rdma/connection_fixture.h"

namespace pnfsrdma::rpc_rdma::testing {
namespace {

// A server whose device keeps the queue pairs of clients that have gone.
class RpcRdmaDestruction : public ConnectionTest {
 protected:
  std::unique_ptr<rdma::Transport> around(std::unique_ptr<rdma::Transport> inner) override {
    return std::make_unique<rdma::testing::WrappedTransport>(std::move(inner), rdma::testing::held_by(hold_));
  }
  // Whatever a test expects, its server must come to an end.
  void TearDown() override {
    hold_->release();
    ConnectionTest::TearDown();
  }

  // A client has gone, and somebody is about to destroy the server's queue pair.
  void lose_a_client() {
    auto client = connect();
    exchange(*client, 1, {nfs4::PutRootFileHandleArguments{}});
    client.reset();
    hold_->wait_until_asked();
  }

  std::shared_ptr<rdma::testing::Hold> hold_ = std::make_shared<rdma::testing::Hold>();
};

TEST_P(RpcRdmaDestruction, AQueuePairTheDeviceKeepsHoldsUpNobodyElse) {
  lose_a_client();
  auto other = std::async(std::launch::async, [this] {
    const auto client = connect();
    return exchange(*client, 2, {nfs4::PutRootFileHandleArguments{}}).results.status;
  });
  EXPECT_EQ(other.wait_for(8s), std::future_status::ready);
  hold_->release();
  EXPECT_EQ(other.get(), nfs4::Status::kOk);
}

TEST_P(RpcRdmaDestruction, AConnectionCountsUntilTheDeviceHasGivenItUp) {
  lose_a_client();
  EXPECT_EQ(listener_->connections(), 1U);
  hold_->release();
  const SteadyTime deadline = soon();
  while (listener_->connections() > 0 && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(1ms);
  }
  EXPECT_EQ(listener_->connections(), 0U);
}

INSTANTIATE_TEST_SUITE_P(, RpcRdmaDestruction, ::testing::Values(Kind::kMemory, Kind::kIwarp), name_of);

}  // namespace
}  // namespace pnfsrdma::rpc_rdma::testing
