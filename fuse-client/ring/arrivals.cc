// SPDX-License-Identifier: Apache-2.0
#include "fuse-client/ring/arrivals.h"

#include <algorithm>
#include <utility>

#include "shared/base/check.h"

namespace pnfsrdma::fuse_client {

std::optional<uint64_t> Arrivals::in_the_way_of(uid_t user) const {
  if (count_of(user) >= kOfAUserMax) return oldest_of(user);
  if (waiting_.size() >= kMax) return oldest_of(most());
  return std::nullopt;
}

void Arrivals::add(uint64_t id, FileDescriptor socket, uid_t user, SteadyTime now) {
  CHECK(!in_the_way_of(user));
  waiting_.emplace(id, Arrival{std::move(socket), user, now + kPatience});
}

const Arrivals::Arrival* Arrivals::find(uint64_t id) const {
  const auto found = waiting_.find(id);
  return found == waiting_.end() ? nullptr : &found->second;
}

Arrivals::Arrival Arrivals::take(uint64_t id) {
  const auto found = waiting_.find(id);
  CHECK(found != waiting_.end());
  Arrival taken = std::move(found->second);
  waiting_.erase(found);
  return taken;
}

size_t Arrivals::expire(SteadyTime now) {
  return std::erase_if(waiting_, [&](const auto& each) { return each.second.until <= now; });
}

std::optional<SteadyTime> Arrivals::next_expiry() const {
  if (waiting_.empty()) return std::nullopt;
  return waiting_.begin()->second.until;
}

size_t Arrivals::count_of(uid_t user) const {
  return static_cast<size_t>(
      std::ranges::count_if(waiting_, [&](const auto& each) { return each.second.user == user; }));
}

// Of several the one who has been here longest.
uid_t Arrivals::most() const {
  uid_t user = waiting_.begin()->second.user;
  size_t count = 0;
  for (const auto& [id, arrival] : waiting_) {
    const size_t own = count_of(arrival.user);
    if (own > count) user = arrival.user, count = own;
  }
  return user;
}

uint64_t Arrivals::oldest_of(uid_t user) const {
  const auto found =
      std::ranges::find_if(waiting_, [&](const auto& each) { return each.second.user == user; });
  CHECK(found != waiting_.end());
  return found->first;
}

}  // namespace pnfsrdma::fuse_client
