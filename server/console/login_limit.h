// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "shared/base/clock.h"
#include "shared/base/guarded.h"

namespace pnfsrdma::console {

// How often somebody may try a password: ten attempts at once, then one every six seconds, per key (an
// network, a user's name). A right one is not counted. Thread-safe.
class LoginLimit {
 public:
  explicit LoginLimit(const Clock& clock) : clock_(clock) {}

  // 0: go ahead. Else the seconds to wait.
  int wait_seconds(const std::string& key);
  // Whether an attempt failed lately: less than the full number is left.
  bool has_failed(const std::string& key);
  void failed(const std::string& key);
  void succeeded(const std::string& key) { attempts_.lock()->erase(key); }

 private:
  struct Attempts {
    double left = kBurst;
    SteadyTime seen;
  };
  static constexpr double kBurst = 10;
  static constexpr double kPerSecond = 1.0 / 6;
  static constexpr size_t kKeysMax = 4096;

  Attempts& refilled(std::map<std::string, Attempts>& all, const std::string& key);

  const Clock& clock_;
  Guarded<std::map<std::string, Attempts>> attempts_;
};

// What one caller has of addresses: an IPv4 address, or the /64 of an IPv6 one, within which a host takes a
// new address whenever it likes. Anything else: itself.
std::string network_of(const std::string& address);

}  // namespace pnfsrdma::console
