// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "shared/base/sync.h"
#include "shared/initiator/session/options.h"
#include "shared/initiator/session/poller.h"
#include "shared/rpc/record.h"
#include "tests/sim/mds_network.h"

// The two files of the session that know the kernel (socket.cc, poller.cc) over a Wire instead.
namespace pnfsrdma {

namespace sim {

Result<> WireSocket::send(ByteSpan record, Milliseconds) {
  counters_.sends.fetch_add(1);
  if (!wire_->client_open) return fail(EPIPE, "send to the MDS");
  const ByteSpan message = record.subspan(rpc::kMarkSize);
  wire_->to_server(Bytes(message.begin(), message.end()));
  return {};
}

Result<> WireSocket::receive(bool wait, std::vector<Bytes>& records) {
  counters_.receives.fetch_add(1);
  if (wait && !wire_->readable()) (void)wire_->changed.wait(steady_now() + kSlice, "a record of the MDS");
  if (!wire_->readable()) return {};
  if (wire_->inbox.empty()) return fail(ECONNRESET, "the MDS closed the connection");
  while (!wire_->inbox.empty()) {
    Wire::Letter letter = std::move(wire_->inbox.front());
    wire_->inbox.pop_front();
    records.push_back(std::move(letter.record));
    if (letter.taken) letter.taken();
  }
  return {};
}

}  // namespace sim

namespace initiator {

// The owner's name is the client's number.
Result<std::shared_ptr<SessionSocket>> SessionSocket::connect(const SessionOptions& options, std::string_view,
                                                              Milliseconds timeout, size_t,
                                                              Counters& counters, DeferredDestruction&) {
  auto wire = sim::MdsNetwork::current().connect(std::stoul(options.owner), steady_now() + timeout);
  if (!wire) return std::unexpected(wire.error());
  return std::make_shared<sim::WireSocket>(*std::move(wire), counters);
}

struct Poller::Impl {
  std::shared_ptr<simulated::Bell> changed = std::make_shared<simulated::Bell>();
  std::weak_ptr<sim::Wire> wire;
  SteadyTime timer = SteadyTime::max();
  bool woken = false;
};

Poller::Poller() : impl_(std::make_unique<Impl>()) {}
Poller::~Poller() = default;

Result<> Poller::open() {
  return {};
}

void Poller::watch(const std::shared_ptr<SessionSocket>& socket) {
  armed_ = false;
  impl_->wire.reset();
  if (!socket) return;
  const auto& wire = dynamic_cast<sim::WireSocket&>(*socket).wire();
  impl_->wire = wire;
  wire->watcher = impl_->changed;
}

void Poller::arm() {
  armed_ = true;
  impl_->changed->ring();
}

void Poller::disarm_now(Milliseconds idle_delay) {
  armed_ = false;
  start_timer(idle_delay);
}

void Poller::start_timer(Milliseconds delay) {
  impl_->timer = steady_now() + delay;
  impl_->changed->ring();
}

void Poller::wake() {
  impl_->woken = true;
  impl_->changed->ring();
}

Poller::Events Poller::wait(Milliseconds longest) {
  const SteadyTime until = steady_now() + longest;
  for (;;) {
    Events seen;
    seen.timer = steady_now() >= impl_->timer;
    if (seen.timer) impl_->timer = SteadyTime::max();
    const auto wire = impl_->wire.lock();
    seen.socket = armed_ && wire && wire->readable();
    if (seen.socket) armed_ = false;
    if (seen.timer || seen.socket || std::exchange(impl_->woken, false) || steady_now() >= until) return seen;
    (void)impl_->changed->wait(std::min(until, impl_->timer), "the session's poller");
  }
}

}  // namespace initiator

}  // namespace pnfsrdma
