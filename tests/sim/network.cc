// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/network.h"

#include <algorithm>
#include <cerrno>

#include "shared/base/sync.h"
#include "shared/brick/session_codec.h"
#include "tests/sim/link_queue_pair.h"

namespace pnfsrdma::sim {

namespace {

class LinkTransport final : public rdma::Transport {
 public:
  LinkTransport(Network& network, size_t client) : network_(network), client_(client) {}
  std::string name() const override { return "memory"; }
  std::shared_ptr<rdma::ProtectionDomain> make_protection_domain() override {
    return std::make_shared<rdma::SoftwareDomain>();
  }
  Result<std::unique_ptr<rdma::Region>> register_region(std::shared_ptr<rdma::ProtectionDomain> domain,
                                                        MutableByteSpan memory, rdma::Access access,
                                                        rdma::Flusher* flusher) override {
    return rdma::make_software_region(std::move(domain), memory, access, flusher, network_.random());
  }
  Result<rdma::Connected> connect(const std::string& address, std::shared_ptr<rdma::ProtectionDomain> domain,
                                  const rdma::ConnectOptions& options) override {
    return network_.connect(client_, address, std::dynamic_pointer_cast<rdma::SoftwareDomain>(domain),
                            options);
  }
  Result<std::unique_ptr<rdma::Listener>> listen(
      const std::string&, std::function<void(std::unique_ptr<rdma::ConnectionRequest>)>) override {
    return fail(EOPNOTSUPP, "only bricks listen");
  }

 private:
  Network& network_;
  const size_t client_;
};

}  // namespace

Network::Network(uint64_t seed, Random& random)
    : random_(random), dice_(seed), thread_([this] { deliver(); }) {}

Network::~Network() {
  ending_ = true;
  due_changed_.ring();
  thread_.join();
}

void Network::add(const std::string& address, size_t brick, Responder& responder) {
  addresses_[address] = brick;
  responders_[brick] = &responder;
}

std::unique_ptr<rdma::Transport> Network::make_transport(size_t client) {
  return std::make_unique<LinkTransport>(*this, client);
}

void Network::partition(size_t client, size_t brick, bool apart) {
  if (apart) {
    apart_[{client, brick}] = true;
    return;
  }
  apart_.erase({client, brick});
  for (const auto& weak : links_) {
    const auto link = weak.lock();
    if (!link || link->client != client || link->brick != brick) continue;
    for (const size_t direction : {Link::kToBrick, Link::kToClient}) schedule(steady_now(), link, direction);
  }
}

void Network::cut(size_t client, size_t brick) {
  for (const auto& weak : links_) {
    const auto link = weak.lock();
    if (link && link->client == client && link->brick == brick) link->cut(dice_);
  }
}

void Network::abandon(size_t client) {
  for (const auto& weak : links_) {
    const auto link = weak.lock();
    if (link && link->client == client) link->abandon(dice_);
  }
}

SteadyTime::duration Network::latency() {
  const auto usual = dice_.microseconds(3, 30);
  return dice_.one_in(50) ? dice_.microseconds(100, 3000) : usual;
}

Result<rdma::Connected> Network::connect(size_t client, const std::string& address,
                                         std::shared_ptr<rdma::SoftwareDomain> domain,
                                         const rdma::ConnectOptions& options) {
  const size_t brick = addresses_.at(address);
  sleep_for(latency());
  if (apart(client, brick)) {
    sleep_until(options.deadline);
    return fail(ETIMEDOUT, "connecting to " + address);
  }
  if (!responder(brick).up()) return fail(ECONNREFUSED, address + " is down");
  const auto data = brick::decode_connect(options.private_data);
  if (!data) return std::unexpected(data.error());
  rdma::QueuePairLimits limits = options.limits;
  limits.native_flush = limits.native_flush && responder(brick).native_flush();
  auto link = std::make_shared<Link>(*this, client, brick, std::move(domain), limits);
  const auto accepted = responder(brick).connected(*data, link);
  if (!accepted) return fail(ECONNREFUSED, std::string(as_text(brick::encode_reject(accepted.error()))));
  std::erase_if(links_, [](const auto& weak) { return weak.expired(); });
  links_.push_back(link);
  sleep_for(latency());
  return rdma::Connected{std::make_unique<LinkQueuePair>(link), {}};
}

void Network::schedule(SteadyTime due, const std::shared_ptr<Link>& link, size_t direction) {
  const bool first = due_.empty() || due < due_.begin()->first;
  due_.emplace(due, std::pair{link, direction});
  if (first) due_changed_.ring();
}

void Network::deliver() {
  while (!ending_) {
    if (due_.empty() || due_.begin()->first > steady_now()) {
      (void)due_changed_.wait(due_.empty() ? SteadyTime::max() : due_.begin()->first, "something to deliver");
      continue;
    }
    const auto [weak, direction] = due_.begin()->second;
    due_.erase(due_.begin());
    if (const auto link = weak.lock()) link->pump(direction);
  }
}

}  // namespace pnfsrdma::sim
