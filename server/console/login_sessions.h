// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>

#include "server/console/caller.h"
#include "shared/base/clock.h"
#include "shared/base/guarded.h"
#include "shared/base/random.h"

namespace pnfsrdma::console {

// Users logged in with a password, by the digest of the cookie. In memory only: a restart of the server
// logs everybody out. A session ends half an hour after its last use, and twelve hours after its first.
// Thread-safe.
class LoginSessions {
 public:
  LoginSessions(const Clock& clock, Random& random) : clock_(clock), random_(random) {}

  struct Session {
    std::string user;
    std::string csrf_token;
    WallTime expires;  // unless it is used
  };
  struct Opened {
    std::string cookie;
    std::string key;
    Session session;
  };
  Opened open(const std::string& user);
  // Its key and what it is; counts as use.
  std::optional<std::pair<std::string, Session>> find(const std::string& cookie);
  void close(const std::string& key) { sessions_.lock()->erase(key); }
  // All of the user, but for the one with this key.
  void close_all_of(const std::string& user, const std::string& but = {});

  static constexpr std::chrono::minutes kIdle{30};
  static constexpr std::chrono::hours kLongest{12};

 private:
  struct Kept {
    std::string user;
    std::string csrf_token;
    SteadyTime opened;
    SteadyTime used;
  };
  static constexpr size_t kSessionsMax = 1024;
  bool over(const Kept& kept) const;
  Session shown(const Kept& kept) const;

  const Clock& clock_;
  Random& random_;
  Guarded<std::map<std::string, Kept>> sessions_;
};

}  // namespace pnfsrdma::console
