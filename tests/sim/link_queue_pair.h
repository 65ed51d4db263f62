// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "tests/sim/network.h"

namespace pnfsrdma::sim {

// The client's end of a Link as a queue pair.
class LinkQueuePair final : public rdma::QueuePair {
 public:
  explicit LinkQueuePair(std::shared_ptr<Link> link) : link_(std::move(link)) {}
  ~LinkQueuePair() override { link_->close_client(); }

  Result<> post_write(uint64_t work_id, std::span<const rdma::LocalSlice> source,
                      rdma::RemoteSlice target) override;
  Result<> post_read(uint64_t work_id, rdma::LocalSlice sink, rdma::RemoteSlice source) override;
  Result<> post_send(uint64_t work_id, std::span<const rdma::LocalSlice> message) override;
  Result<> post_receive(uint64_t work_id, rdma::LocalSlice buffer) override;
  Result<> post_flush(uint64_t work_id, rdma::RemoteSlice target, rdma::FlushLevel level) override;
  Result<> post_atomic_write(uint64_t work_id, uint64_t value, rdma::RemoteSlice target) override;
  void submit() override { link_->submit(); }
  size_t poll(std::span<rdma::Completion> completions) override;
  bool wait(SteadyTime deadline) override;
  int fd() const override { return -1; }
  bool connected() const override { return link_->client_open; }
  void fail() override { link_->close_client(); }
  const rdma::QueuePairLimits& limits() const override { return link_->limits; }
  rdma::TransportCounters counters() const override { return link_->counters; }
  std::string peer() const override { return "brick " + std::to_string(link_->brick); }

 private:
  Result<> post(Link::Request request);

  const std::shared_ptr<Link> link_;
};

}  // namespace pnfsrdma::sim
