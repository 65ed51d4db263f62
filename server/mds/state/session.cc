// SPDX-License-Identifier: Apache-2.0
#include "server/mds/state/session.h"

#include <algorithm>

namespace pnfsrdma::mds {

Session::Session(const SessionId& id, std::shared_ptr<Client> client, const nfs4::ChannelAttributes& fore,
                 BackChannel back)
    : id_(id), client_(std::move(client)), fore_(fore), slots_(fore.max_requests), back_(std::move(back)) {}

Session::~Session() {
  if (memory_ != nullptr) memory_->give_back(reserved_);
}

size_t Session::cost_of(size_t slots) const {
  return kSessionBytes + slots * reply_slot_bytes(fore_.max_response_size_cached);
}

bool Session::reserve(rpc::MemoryBudget* memory) {
  const size_t bytes = cost_of(slots_.highest() + size_t{1});
  if (memory == nullptr) return true;
  if (!memory->reserve(bytes)) return false;
  memory_ = memory;
  reserved_ = bytes;
  return true;
}

void Session::limit_reply_cache(size_t bytes, bool grow) {
  if (memory_ == nullptr) return;
  const size_t each = reply_slot_bytes(fore_.max_response_size_cached);
  const size_t of_slots = bytes - std::min(bytes, kSessionBytes);
  const auto slots = static_cast<uint32_t>(std::clamp<size_t>(of_slots / each, 1, fore_.max_requests));
  if (slots <= slots_.target_highest()) {
    slots_.set_target_highest(slots - 1);
  } else if (grow) {
    const size_t more = slots > slots_.highest() + 1 ? (slots - slots_.highest() - 1) * each : 0;
    if (!memory_->reserve(more)) return;
    reserved_ += more;
    slots_.set_target_highest(slots - 1);
  }
}

void Session::give_back_slots() {
  if (memory_ == nullptr) return;
  const size_t needed = cost_of(slots_.highest() + size_t{1});
  if (needed >= reserved_) return;
  memory_->give_back(reserved_ - needed);
  reserved_ = needed;
}

bool Session::contains(const Connections& connections, const rpc::Connection& connection) {
  return std::ranges::any_of(connections,
                             [&](const auto& bound) { return bound.lock().get() == &connection; });
}

void Session::bind(Connections& connections, const rpc::ConnectionPointer& connection) {
  // Also called by every SEQUENCE: the common case is the one look at the newest binding.
  if (!connections.empty() && connections.back().lock() == connection) return;
  std::erase_if(connections, [](const auto& bound) {
    const auto live = bound.lock();
    return !live || !live->is_open();
  });
  if (!contains(connections, *connection)) connections.push_back(connection);
}

bool Session::bound(const rpc::Connection& connection) const {
  return contains(fore_connections_, connection) || contains(back_connections_, connection);
}

bool Session::bound_back(const rpc::Connection& connection) const {
  return contains(back_connections_, connection);
}

void Session::unbind_back(const rpc::Connection& connection) {
  std::erase_if(back_connections_, [&](const auto& bound) { return bound.lock().get() == &connection; });
}

std::vector<rpc::ConnectionPointer> Session::connections() const {
  std::vector<rpc::ConnectionPointer> connections;
  for (const Connections* bound_ones : {&fore_connections_, &back_connections_}) {
    for (const auto& bound : *bound_ones) {
      auto live = bound.lock();
      if (live && live->is_open()) connections.push_back(std::move(live));
    }
  }
  return connections;
}

std::vector<std::string> Session::peers() const {
  std::vector<std::string> peers;
  for (const auto& bound : fore_connections_) {
    const auto live = bound.lock();
    if (live && live->is_open()) peers.push_back(live->peer());
  }
  return peers;
}

rpc::ConnectionPointer Session::newest(const Connections& connections) {
  for (auto bound = connections.rbegin(); bound != connections.rend(); ++bound) {
    const auto live = bound->lock();
    if (live && live->is_open()) return live;
  }
  return nullptr;
}

std::string Session::transport() const {
  const rpc::ConnectionPointer live = newest(fore_connections_);
  return live ? live->transport() : "none";
}

rpc::ConnectionPointer Session::back_connection() const {
  return newest(back_connections_);
}

}  // namespace pnfsrdma::mds
