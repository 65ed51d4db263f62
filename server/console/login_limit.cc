// SPDX-License-Identifier: Apache-2.0
#include "server/console/login_limit.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cmath>

namespace pnfsrdma::console {

LoginLimit::Attempts& LoginLimit::refilled(std::map<std::string, Attempts>& all, const std::string& key) {
  const SteadyTime now = clock_.now();
  // Forgets those that are full again; if an attacker has made up more names than that, the oldest.
  if (all.size() >= kKeysMax) {
    const auto full = std::chrono::duration<double>(kBurst / kPerSecond);
    std::erase_if(all, [&](const auto& entry) { return now - entry.second.seen > full; });
    if (all.size() >= kKeysMax)
      all.erase(std::ranges::min_element(all, {}, [](const auto& entry) { return entry.second.seen; }));
  }
  const auto [found, added] = all.try_emplace(key, Attempts{.left = kBurst, .seen = now});
  Attempts& attempts = found->second;
  const double seconds = std::chrono::duration<double>(now - attempts.seen).count();
  attempts.left = std::min(kBurst, attempts.left + seconds * kPerSecond);
  attempts.seen = now;
  return attempts;
}

int LoginLimit::wait_seconds(const std::string& key) {
  auto all = attempts_.lock();
  const Attempts& attempts = refilled(*all, key);
  return attempts.left >= 1 ? 0 : static_cast<int>(std::ceil((1 - attempts.left) / kPerSecond));
}

bool LoginLimit::has_failed(const std::string& key) {
  auto all = attempts_.lock();
  return refilled(*all, key).left < kBurst;
}

void LoginLimit::failed(const std::string& key) {
  auto all = attempts_.lock();
  Attempts& attempts = refilled(*all, key);
  attempts.left = std::max(0.0, attempts.left - 1);
}

std::string network_of(const std::string& address) {
  in6_addr six{};
  if (inet_pton(AF_INET6, address.substr(0, address.find('%')).c_str(), &six) != 1) return address;
  constexpr size_t kNetworkBytes = 8;
  std::fill(six.s6_addr + kNetworkBytes, std::end(six.s6_addr), 0);
  char text[INET6_ADDRSTRLEN] = {};
  inet_ntop(AF_INET6, &six, text, sizeof text);
  return std::string(text) + "/64";
}

}  // namespace pnfsrdma::console
