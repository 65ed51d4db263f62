// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "shared/rdma/transport.h"

namespace pnfsrdma::rdma::testing {

// A queue pair that does what another one does: what derives from it does one thing differently.
class WrappedQueuePair : public QueuePair {
 public:
  explicit WrappedQueuePair(std::unique_ptr<QueuePair> inner) : inner_(std::move(inner)) {}

  Result<> post_write(uint64_t work_id, std::span<const LocalSlice> source, RemoteSlice target) override {
    return inner_->post_write(work_id, source, target);
  }
  Result<> post_read(uint64_t work_id, LocalSlice sink, RemoteSlice source) override {
    return inner_->post_read(work_id, sink, source);
  }
  Result<> post_send(uint64_t work_id, std::span<const LocalSlice> message) override {
    return inner_->post_send(work_id, message);
  }
  Result<> post_send_lazily(uint64_t work_id, std::span<const LocalSlice> message) override {
    return inner_->post_send_lazily(work_id, message);
  }
  Result<> post_receive(uint64_t work_id, LocalSlice buffer) override {
    return inner_->post_receive(work_id, buffer);
  }
  Result<> post_flush(uint64_t work_id, RemoteSlice target, FlushLevel level) override {
    return inner_->post_flush(work_id, target, level);
  }
  Result<> post_atomic_write(uint64_t work_id, uint64_t value, RemoteSlice target) override {
    return inner_->post_atomic_write(work_id, value, target);
  }
  void submit() override { inner_->submit(); }
  size_t poll(std::span<Completion> completions) override { return inner_->poll(completions); }
  bool wait(SteadyTime deadline) override { return inner_->wait(deadline); }
  int fd() const override { return inner_->fd(); }
  bool connected() const override { return inner_->connected(); }
  void fail() override { inner_->fail(); }
  const QueuePairLimits& limits() const override { return inner_->limits(); }
  TransportCounters counters() const override { return inner_->counters(); }
  std::string peer() const override { return inner_->peer(); }

 private:
  std::unique_ptr<QueuePair> inner_;
};

// What a test puts around a queue pair. Empty: nothing.
using Wrapping = std::function<std::unique_ptr<QueuePair>(std::unique_ptr<QueuePair>)>;

// A transport whose queue pairs are wrapped: those of the accepting side and those of the connecting side.
class WrappedTransport final : public Transport {
 public:
  WrappedTransport(std::unique_ptr<Transport> inner, Wrapping accepted, Wrapping connected = {})
      : inner_(std::move(inner)), accepted_(std::move(accepted)), connected_(std::move(connected)) {}

  std::string name() const override { return inner_->name(); }
  std::shared_ptr<ProtectionDomain> make_protection_domain() override {
    return inner_->make_protection_domain();
  }
  Result<std::unique_ptr<Region>> register_region(std::shared_ptr<ProtectionDomain> domain,
                                                  MutableByteSpan memory, Access access,
                                                  Flusher* flusher) override {
    return inner_->register_region(std::move(domain), memory, access, flusher);
  }
  Result<Connected> connect(const std::string& address, std::shared_ptr<ProtectionDomain> domain,
                            const ConnectOptions& options) override {
    TRY_ASSIGN(Connected made, inner_->connect(address, std::move(domain), options));
    if (connected_) made.queue_pair = connected_(std::move(made.queue_pair));
    return made;
  }
  Result<std::unique_ptr<Listener>> listen(
      const std::string& address,
      std::function<void(std::unique_ptr<ConnectionRequest>)> on_request) override {
    return inner_->listen(address, [on_request, wrapping = accepted_](auto request) {
      on_request(std::make_unique<Request>(std::move(request), wrapping));
    });
  }

 private:
  class Request final : public ConnectionRequest {
   public:
    Request(std::unique_ptr<ConnectionRequest> inner, Wrapping wrapping)
        : inner_(std::move(inner)), wrapping_(std::move(wrapping)) {}
    ByteSpan private_data() const override { return inner_->private_data(); }
    std::string peer() const override { return inner_->peer(); }
    Result<std::unique_ptr<QueuePair>> accept(std::shared_ptr<ProtectionDomain> domain, ByteSpan private_data,
                                              const QueuePairLimits& limits) override {
      TRY_ASSIGN(auto queue_pair, inner_->accept(std::move(domain), private_data, limits));
      return wrapping_ ? wrapping_(std::move(queue_pair)) : std::move(queue_pair);
    }
    void reject(ByteSpan private_data) override { inner_->reject(private_data); }

   private:
    std::unique_ptr<ConnectionRequest> inner_;
    Wrapping wrapping_;
  };

  std::unique_ptr<Transport> inner_;
  Wrapping accepted_, connected_;
};

}  // namespace pnfsrdma::rdma::testing
