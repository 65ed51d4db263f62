// SPDX-License-Identifier: Apache-2.0
#include "server/mds/state/state_memory.h"

#include "server/mds/state/client_table.h"
#include "shared/base/check.h"
#include "shared/base/log.h"

namespace pnfsrdma::mds {
namespace {

constexpr Milliseconds kFullLoggedEvery{60'000};
constexpr double kShareOfSpare = 0.75;

}  // namespace

std::string StateMemory::address_of(ClientId client) const {
  const auto known = clients_.find(client);
  return known ? known->address : std::string();
}

void StateMemory::hold(ClientId client, size_t bytes) {
  const auto [holder, fresh] = holders_.try_emplace(client);
  if (fresh) holder->second.address = address_of(client);
  holder->second.bytes += bytes;
  by_address_[holder->second.address] += bytes;
  budget_.hold_state(bytes);
}

void StateMemory::give_back(ClientId client, size_t bytes) {
  const auto holder = holders_.find(client);
  CHECK(holder != holders_.end() && bytes <= holder->second.bytes);
  const auto of = by_address_.find(holder->second.address);
  of->second -= bytes;
  if (of->second == 0) by_address_.erase(of);
  holder->second.bytes -= bytes;
  if (holder->second.bytes == 0) holders_.erase(holder);
  budget_.give_back_state(bytes);
}

bool StateMemory::is_within(ClientId client, double share) const {
  const double limit = static_cast<double>(budget_.state_limit()) * share;
  if (static_cast<double>(budget_.state()) >= limit) return false;
  const auto of = by_address_.find(address_of(client));
  if (of == by_address_.end()) return true;
  const rpc::MemoryLimits& limits = budget_.limits();
  const double of_address = static_cast<double>(limits.bytes_per_address) / static_cast<double>(limits.bytes);
  return static_cast<double>(of->second) < limit * of_address;
}

bool StateMemory::has_room(ClientId client) {
  if (is_within(client, 1)) return true;
  const SteadyTime now = budget_.clock().now();
  if (logged_ == SteadyTime() || now - logged_ >= kFullLoggedEvery) {
    logged_ = now;
    log_warning("mds",
                "state-refused client={:#x} address={} state_bytes={} limit={} what=\"opens and locks wait\"",
                client, address_of(client), budget_.state(), budget_.state_limit());
  }
  return false;
}

bool StateMemory::has_room_to_spare(ClientId client) const {
  return is_within(client, kShareOfSpare);
}

}  // namespace pnfsrdma::mds
