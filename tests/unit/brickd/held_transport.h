// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "shared/rdma/transport.h"

namespace pnfsrdma::brick {

// What makes a device keep its queue pairs: whoever destroys one waits. Thread-safe.
class Hold {
 public:
  void keep() {
    asked_ = true;
    asked_.notify_all();
    released_.wait(false);
  }
  // Until somebody waits.
  void wait_until_asked() { asked_.wait(false); }
  void release() {
    released_ = true;
    released_.notify_all();
  }

 private:
  std::atomic<bool> asked_{false}, released_{false};
};

// A device that does not give up the queue pairs it has accepted before `hold` is released.
class HeldTransport final : public rdma::Transport {
 public:
  HeldTransport(std::unique_ptr<rdma::Transport> inner, Hold& hold) : inner_(std::move(inner)), hold_(hold) {}

  std::string name() const override { return inner_->name(); }
  std::shared_ptr<rdma::ProtectionDomain> make_protection_domain() override {
    return inner_->make_protection_domain();
  }
  Result<std::unique_ptr<rdma::Region>> register_region(std::shared_ptr<rdma::ProtectionDomain> domain,
                                                        MutableByteSpan memory, rdma::Access access,
                                                        rdma::Flusher* flusher) override {
    return inner_->register_region(std::move(domain), memory, access, flusher);
  }
  Result<rdma::Connected> connect(const std::string& address, std::shared_ptr<rdma::ProtectionDomain> domain,
                                  const rdma::ConnectOptions& options) override {
    return inner_->connect(address, std::move(domain), options);
  }
  Result<std::unique_ptr<rdma::Listener>> listen(
      const std::string& address,
      std::function<void(std::unique_ptr<rdma::ConnectionRequest>)> on_request) override {
    return inner_->listen(address, [on_request, &hold = hold_](auto request) {
      on_request(std::make_unique<Request>(std::move(request), hold));
    });
  }

 private:
  class HeldQueuePair final : public rdma::QueuePair {
   public:
    HeldQueuePair(std::unique_ptr<rdma::QueuePair> inner, Hold& hold)
        : inner_(std::move(inner)), hold_(hold) {}
    ~HeldQueuePair() override { hold_.keep(); }

    Result<> post_write(uint64_t work_id, std::span<const rdma::LocalSlice> source,
                        rdma::RemoteSlice target) override {
      return inner_->post_write(work_id, source, target);
    }
    Result<> post_read(uint64_t work_id, rdma::LocalSlice sink, rdma::RemoteSlice source) override {
      return inner_->post_read(work_id, sink, source);
    }
    Result<> post_send(uint64_t work_id, std::span<const rdma::LocalSlice> message) override {
      return inner_->post_send(work_id, message);
    }
    Result<> post_send_lazily(uint64_t work_id, std::span<const rdma::LocalSlice> message) override {
      return inner_->post_send_lazily(work_id, message);
    }
    Result<> post_receive(uint64_t work_id, rdma::LocalSlice buffer) override {
      return inner_->post_receive(work_id, buffer);
    }
    Result<> post_flush(uint64_t work_id, rdma::RemoteSlice target, rdma::FlushLevel level) override {
      return inner_->post_flush(work_id, target, level);
    }
    Result<> post_atomic_write(uint64_t work_id, uint64_t value, rdma::RemoteSlice target) override {
      return inner_->post_atomic_write(work_id, value, target);
    }
    void submit() override { inner_->submit(); }
    size_t poll(std::span<rdma::Completion> completions) override { return inner_->poll(completions); }
    bool wait(SteadyTime deadline) override { return inner_->wait(deadline); }
    int fd() const override { return inner_->fd(); }
    bool connected() const override { return inner_->connected(); }
    void fail() override { inner_->fail(); }
    const rdma::QueuePairLimits& limits() const override { return inner_->limits(); }
    rdma::TransportCounters counters() const override { return inner_->counters(); }
    std::string peer() const override { return inner_->peer(); }

   private:
    std::unique_ptr<rdma::QueuePair> inner_;
    Hold& hold_;
  };

  class Request final : public rdma::ConnectionRequest {
   public:
    Request(std::unique_ptr<rdma::ConnectionRequest> inner, Hold& hold)
        : inner_(std::move(inner)), hold_(hold) {}
    ByteSpan private_data() const override { return inner_->private_data(); }
    std::string peer() const override { return inner_->peer(); }
    Result<std::unique_ptr<rdma::QueuePair>> accept(std::shared_ptr<rdma::ProtectionDomain> domain,
                                                    ByteSpan private_data,
                                                    const rdma::QueuePairLimits& limits) override {
      TRY_ASSIGN(auto queue_pair, inner_->accept(std::move(domain), private_data, limits));
      return std::make_unique<HeldQueuePair>(std::move(queue_pair), hold_);
    }
    void reject(ByteSpan private_data) override { inner_->reject(private_data); }

   private:
    std::unique_ptr<rdma::ConnectionRequest> inner_;
    Hold& hold_;
  };

  std::unique_ptr<rdma::Transport> inner_;
  Hold& hold_;
};

}  // namespace pnfsrdma::brick
