// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/mds_network.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "shared/base/check.h"
#include "shared/base/sync.h"

namespace pnfsrdma::sim {

namespace {

MdsNetwork* the_network = nullptr;

void drop_some(auto& messages, Dice& dice) {
  messages.erase(messages.end() - static_cast<std::ptrdiff_t>(dice.between(0, messages.size())),
                 messages.end());
}

}  // namespace

void Wire::send(size_t direction, std::function<void()> deliver) {
  auto& queue = on_its_way_[direction];
  SteadyTime due = steady_now() + network.latency(client);
  if (!queue.empty()) due = std::max(due, queue.back().due);
  queue.push_back({due, std::move(deliver)});
  network.schedule(due, shared_from_this(), direction);
}

void Wire::pump(size_t direction) {
  auto& queue = on_its_way_[direction];
  while (!queue.empty() && queue.front().due <= steady_now() && network.reachable(client)) {
    const auto deliver = std::move(queue.front().deliver);
    queue.pop_front();
    deliver();
  }
}

void Wire::tell() {
  changed.ring();
  if (const auto bell = watcher.lock()) bell->ring();
}

void Wire::to_client(Bytes record, std::function<void()> taken) {
  if (!server_open) return;
  send(kToClient, [self = shared_from_this(), record = std::move(record), taken = std::move(taken)] {
    if (!self->client_open) return;
    self->inbox.push_back({record, taken});
    self->tell();
  });
}

void Wire::to_server(Bytes record) {
  send(kToServer, [self = shared_from_this(), record = std::move(record)] {
    if (self->server_open) self->network.server_->message(self, record);
  });
}

void Wire::close_client() {
  if (!client_open) return;
  client_open = false;
  inbox.clear();
  tell();
  send(kToServer, [self = shared_from_this()] {
    if (!self->server_open) return;
    self->server_open = false;
    self->network.server_->closed(self);
  });
}

void Wire::close_server() {
  if (!server_open) return;
  server_open = false;
  send(kToClient, [self = shared_from_this()] {
    self->client_open = false;
    self->tell();
  });
}

void Wire::cut(Dice& dice) {
  drop_some(on_its_way_[kToServer], dice);
  drop_some(on_its_way_[kToClient], dice);
  const bool heard = server_open;
  close_server();
  if (heard) network.server_->closed(shared_from_this());
}

void Wire::abandon(Dice& dice) {
  drop_some(on_its_way_[kToServer], dice);
  client_open = false;
  inbox.clear();
}

MdsNetwork::MdsNetwork(uint64_t seed) : dice_(seed), thread_([this] { deliver(); }) {
  CHECK(the_network == nullptr);
  the_network = this;
}

MdsNetwork::~MdsNetwork() {
  ending_ = true;
  due_changed_.ring();
  thread_.join();
  the_network = nullptr;
}

MdsNetwork& MdsNetwork::current() {
  CHECK(the_network != nullptr);
  return *the_network;
}

template <typename Each>
void MdsNetwork::each_of(size_t client, Each each) {
  std::erase_if(wires_, [](const auto& weak) { return weak.expired(); });
  for (const auto& weak : std::vector(wires_)) {
    const auto wire = weak.lock();
    if (wire && wire->client == client) each(*wire);
  }
}

Result<std::shared_ptr<Wire>> MdsNetwork::connect(size_t client, SteadyTime deadline) {
  sleep_for(latency(client));
  while (!reachable(client)) {
    if (!way_opened_.wait(deadline, "the way to the MDS")) return fail(ETIMEDOUT, "connecting to the MDS");
  }
  if (!server_->up()) return fail(ECONNREFUSED, "the MDS is down");
  auto wire = std::make_shared<Wire>(*this, client);
  wires_.push_back(wire);
  sleep_for(latency(client));
  return wire;
}

void MdsNetwork::set_reachable(size_t client, bool reachable) {
  if (!reachable) {
    apart_.insert(client);
    return;
  }
  apart_.erase(client);
  way_opened_.ring();
  each_of(client, [this](Wire& wire) {
    for (const size_t direction : {Wire::kToServer, Wire::kToClient})
      schedule(steady_now(), wire.shared_from_this(), direction);
  });
}

void MdsNetwork::cut(size_t client) {
  each_of(client, [this](Wire& wire) { wire.cut(dice_); });
}

void MdsNetwork::abandon(size_t client) {
  each_of(client, [this](Wire& wire) { wire.abandon(dice_); });
}

void MdsNetwork::close_all() {
  for (const auto& weak : std::vector(wires_)) {
    if (const auto wire = weak.lock()) wire->cut(dice_);
  }
}

SteadyTime::duration MdsNetwork::latency(size_t client) {
  const auto usual = dice_.one_in(40) ? dice_.microseconds(500, 20000) : dice_.microseconds(20, 200);
  return usual + std::exchange(delays_[client], SteadyTime::duration(0));
}

void MdsNetwork::schedule(SteadyTime due, const std::shared_ptr<Wire>& wire, size_t direction) {
  const bool first = due_.empty() || due < due_.begin()->first;
  due_.emplace(due, std::pair{wire, direction});
  if (first) due_changed_.ring();
}

void MdsNetwork::deliver() {
  while (!ending_) {
    if (due_.empty() || due_.begin()->first > steady_now()) {
      (void)due_changed_.wait(due_.empty() ? SteadyTime::max() : due_.begin()->first, "a record to deliver");
      continue;
    }
    const auto [weak, direction] = due_.begin()->second;
    due_.erase(due_.begin());
    if (const auto wire = weak.lock()) wire->pump(direction);
  }
}

}  // namespace pnfsrdma::sim
