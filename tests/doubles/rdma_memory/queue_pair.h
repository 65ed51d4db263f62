// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "shared/rdma/transport.h"
#include "tests/doubles/rdma_memory/wire.h"

namespace pnfsrdma::rdma::memory {

// One end of a Wire as a queue pair.
class MemoryQueuePair final : public QueuePair {
 public:
  MemoryQueuePair(std::shared_ptr<Wire> wire, size_t side) : wire_(std::move(wire)), side_(side) {}
  ~MemoryQueuePair() override { wire_->fail(); }

  Result<> post_write(uint64_t work_id, std::span<const LocalSlice> source, RemoteSlice target) override;
  Result<> post_read(uint64_t work_id, LocalSlice sink, RemoteSlice source) override;
  Result<> post_send(uint64_t work_id, std::span<const LocalSlice> message) override;
  Result<> post_receive(uint64_t work_id, LocalSlice buffer) override;
  Result<> post_flush(uint64_t work_id, RemoteSlice target, FlushLevel level) override;
  Result<> post_atomic_write(uint64_t work_id, uint64_t value, RemoteSlice target) override;
  void submit() override { wire_->submit(side_); }
  size_t poll(std::span<Completion> completions) override;
  bool wait(SteadyTime deadline) override;
  int fd() const override { return end().timer.get(); }
  bool connected() const override { return wire_->connected(); }
  void fail() override { wire_->fail(); }
  const QueuePairLimits& limits() const override { return end().limits; }
  TransportCounters counters() const override { return end().counters.read(); }
  std::string peer() const override { return end().peer; }

 private:
  const End& end() const { return wire_->end(side_); }

  const std::shared_ptr<Wire> wire_;
  const size_t side_;
};

}  // namespace pnfsrdma::rdma::memory
