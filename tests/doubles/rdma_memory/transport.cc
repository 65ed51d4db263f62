// SPDX-License-Identifier: Apache-2.0
#include "tests/doubles/rdma_memory/transport.h"

#include <algorithm>
#include <cerrno>

#include "shared/base/sync.h"
#include "tests/doubles/rdma_memory/queue_pair.h"

namespace pnfsrdma::rdma::memory {
namespace {

// What the connecting thread waits for.
struct Answer {
  bool given = false;
  bool accepted = false;
  bool abandoned = false;  // the connecting side gave up first
  Bytes private_data;
};
struct Rendezvous {
  std::shared_ptr<SoftwareDomain> domain;
  QueuePairLimits limits;
  std::shared_ptr<Wire> wire;
  Guarded<Answer> answer;
  Condition answered;
};

class MemoryRequest final : public ConnectionRequest {
 public:
  MemoryRequest(std::shared_ptr<Rendezvous> rendezvous, Bytes private_data)
      : rendezvous_(std::move(rendezvous)), private_data_(std::move(private_data)) {}
  ~MemoryRequest() override { reject({}); }

  ByteSpan private_data() const override { return private_data_; }
  std::string peer() const override { return "memory"; }

  Result<std::unique_ptr<QueuePair>> accept(std::shared_ptr<ProtectionDomain> domain, ByteSpan private_data,
                                            const QueuePairLimits& limits) override;
  void reject(ByteSpan private_data) override { static_cast<void>(give(false, private_data)); }

 private:
  // False when it was answered before or nobody waits any more.
  bool give(bool accepted, ByteSpan private_data) {
    auto answer = rendezvous_->answer.lock();
    if (answer->given || answer->abandoned) return false;
    answer->given = true;
    answer->accepted = accepted;
    answer->private_data.assign(private_data.begin(), private_data.end());
    rendezvous_->answered.notify_all();
    return true;
  }

  const std::shared_ptr<Rendezvous> rendezvous_;
  const Bytes private_data_;
};

Result<std::unique_ptr<QueuePair>> MemoryRequest::accept(std::shared_ptr<ProtectionDomain> domain,
                                                         ByteSpan private_data,
                                                         const QueuePairLimits& limits) {
  if (private_data.size() > kPrivateDataMax) return fail(EMSGSIZE, "too much private data");
  auto software = std::dynamic_pointer_cast<SoftwareDomain>(std::move(domain));
  if (software == nullptr) return fail(EINVAL, "the protection domain belongs to another transport");
  QueuePairLimits ours = limits, theirs = rendezvous_->limits;
  ours.native_flush = theirs.native_flush = ours.native_flush && theirs.native_flush;
  ours.atomic_write = theirs.atomic_write = ours.atomic_write && theirs.atomic_write;
  ours.read_depth = theirs.read_depth = std::max(1u, std::min(ours.read_depth, theirs.read_depth));
  TRY(rendezvous_->wire->set_end(0, rendezvous_->domain, theirs, "memory"));
  TRY(rendezvous_->wire->set_end(1, std::move(software), ours, "memory"));
  auto queue_pair = std::make_unique<MemoryQueuePair>(rendezvous_->wire, 1);
  if (!give(true, private_data)) return fail(ECONNABORTED, "the peer has given up or was answered before");
  return queue_pair;
}

class MemoryListener final : public Listener {
 public:
  MemoryListener(std::shared_ptr<Network> network, std::string address)
      : network_(std::move(network)), address_(std::move(address)) {}
  ~MemoryListener() override { network_->remove_listener(address_); }
  std::string address() const override { return address_; }

 private:
  const std::shared_ptr<Network> network_;
  const std::string address_;
};

class MemoryTransport final : public Transport {
 public:
  MemoryTransport(std::shared_ptr<Network> network, Random& random)
      : network_(std::move(network)), random_(random) {}

  std::string name() const override { return "memory"; }
  std::shared_ptr<ProtectionDomain> make_protection_domain() override {
    return std::make_shared<SoftwareDomain>();
  }
  Result<std::unique_ptr<Region>> register_region(std::shared_ptr<ProtectionDomain> domain,
                                                  MutableByteSpan memory, Access access,
                                                  Flusher* flusher) override {
    return make_software_region(std::move(domain), memory, access, flusher, random_);
  }
  Result<std::unique_ptr<Listener>> listen(
      const std::string& address,
      std::function<void(std::unique_ptr<ConnectionRequest>)> on_request) override {
    TRY_ASSIGN(std::string name, network_->add_listener(address, std::move(on_request)));
    return std::make_unique<MemoryListener>(network_, std::move(name));
  }
  Result<Connected> connect(const std::string& address, std::shared_ptr<ProtectionDomain> domain,
                            const ConnectOptions& options) override;

 private:
  const std::shared_ptr<Network> network_;
  Random& random_;
};

Result<Connected> MemoryTransport::connect(const std::string& address,
                                           std::shared_ptr<ProtectionDomain> domain,
                                           const ConnectOptions& options) {
  if (options.private_data.size() > kPrivateDataMax) return fail(EMSGSIZE, "too much private data");
  auto software = std::dynamic_pointer_cast<SoftwareDomain>(std::move(domain));
  if (software == nullptr) return fail(EINVAL, "the protection domain belongs to another transport");
  TRY_ASSIGN(auto on_request, network_->find_listener(address));
  auto rendezvous = std::make_shared<Rendezvous>();
  rendezvous->domain = std::move(software);
  rendezvous->limits = options.limits;
  rendezvous->wire = std::make_shared<Wire>(network_->faults());
  (*on_request)(std::make_unique<MemoryRequest>(rendezvous, options.private_data));

  auto answer = rendezvous->answer.lock();
  bool given = answer.wait_until(rendezvous->answered, options.deadline,
                                 [](const Answer& value) { return value.given; });
  if (!given) {
    answer->abandoned = true;
    return fail(ETIMEDOUT, "connecting to " + address);
  }
  if (!answer->accepted) {
    std::string reason(as_text(answer->private_data));
    return fail(ECONNREFUSED, reason.empty() ? address + " rejected the connection" : std::move(reason));
  }
  return Connected{std::make_unique<MemoryQueuePair>(rendezvous->wire, 0), std::move(answer->private_data)};
}

}  // namespace

std::unique_ptr<Transport> make_transport(std::shared_ptr<Network> network, Random& random) {
  return std::make_unique<MemoryTransport>(std::move(network), random);
}

}  // namespace pnfsrdma::rdma::memory
