// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "shared/base/guarded.h"
#include "shared/base/result.h"
#include "shared/rdma/transport.h"

namespace pnfsrdma::rdma::memory {

// What a test does to the connections of a network. Faults apply to connections made after set_faults().
struct Faults {
  // Both ends of a connection die when its initiators would run work request number N+1 (counted over both
  // ends).
  std::optional<uint64_t> drop_after_operations;
  // Completions become visible this much later.
  std::chrono::microseconds delay{0};
};

// The wire and name service between memory transports: who listens on which "host:port". Shared by the
// transports that should see each other; no globals. Thread-safe.
class Network {
 public:
  using OnRequest = std::function<void(std::unique_ptr<ConnectionRequest>)>;

  void set_faults(Faults faults) { state_.lock()->faults = faults; }
  Faults faults() { return state_.lock()->faults; }

  // Registers a listener; port 0 takes a free one. Returns the full address. EADDRINUSE, EINVAL.
  Result<std::string> add_listener(const std::string& address, OnRequest on_request);
  void remove_listener(const std::string& address);
  // Who listens there; ECONNREFUSED when nobody does.
  Result<std::shared_ptr<OnRequest>> find_listener(const std::string& address);

 private:
  struct State {
    Faults faults;
    uint32_t next_port = 20050;
    std::map<std::string, std::shared_ptr<OnRequest>> listeners;
  };
  Guarded<State> state_;
};

}  // namespace pnfsrdma::rdma::memory
