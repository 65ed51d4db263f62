// SPDX-License-Identifier: Apache-2.0
#include "server/console/login_sessions.h"

#include <algorithm>

#include "server/console/secret.h"

namespace pnfsrdma::console {

bool LoginSessions::over(const Kept& kept) const {
  const SteadyTime now = clock_.now();
  return now - kept.used > kIdle || now - kept.opened > kLongest;
}

LoginSessions::Session LoginSessions::shown(const Kept& kept) const {
  const auto left = std::min<SteadyTime::duration>(kIdle, kLongest - (clock_.now() - kept.opened));
  WallTime expires = clock_.wall_now();
  expires.seconds += std::chrono::duration_cast<std::chrono::seconds>(left).count();
  return {.user = kept.user, .csrf_token = kept.csrf_token, .expires = expires};
}

LoginSessions::Opened LoginSessions::open(const std::string& user) {
  const std::string cookie = new_secret(random_);
  const Kept kept{
      .user = user, .csrf_token = new_secret(random_), .opened = clock_.now(), .used = clock_.now()};
  auto sessions = sessions_.lock();
  std::erase_if(*sessions, [this](const auto& entry) { return over(entry.second); });
  if (sessions->size() >= kSessionsMax)
    sessions->erase(
        std::ranges::min_element(*sessions, {}, [](const auto& entry) { return entry.second.used; }));
  const std::string key = digest_of(cookie);
  sessions->emplace(key, kept);
  return {cookie, key, shown(kept)};
}

std::optional<std::pair<std::string, LoginSessions::Session>> LoginSessions::find(const std::string& cookie) {
  const std::string key = digest_of(cookie);
  auto sessions = sessions_.lock();
  const auto found = sessions->find(key);
  if (found == sessions->end()) return std::nullopt;
  if (over(found->second)) {
    sessions->erase(found);
    return std::nullopt;
  }
  found->second.used = clock_.now();
  return std::pair(key, shown(found->second));
}

void LoginSessions::close_all_of(const std::string& user, const std::string& but) {
  std::erase_if(*sessions_.lock(),
                [&](const auto& entry) { return entry.second.user == user && entry.first != but; });
}

}  // namespace pnfsrdma::console
