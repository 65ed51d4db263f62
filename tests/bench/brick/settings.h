// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace pnfsrdma::bench {

struct BrickSettings {
  std::string control;              // the brick's control socket: a path, or "host:port"
  std::string transport = "verbs";  // or "iwarp"
  uint64_t rounds = 20;             // of each row of `fencing`
  uint64_t operations = 1000;       // of each row of `durable`
  std::string method = "both";      // of `durable`: or "native_flush", "commit_message"
  // The canary: the brick is never asked to take anything away, and the report must be unsound.
  bool without_revocation = false;
  bool json = false;
};

}  // namespace pnfsrdma::bench
