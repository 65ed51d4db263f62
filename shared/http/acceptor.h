// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "shared/base/clock.h"
#include "shared/base/guarded.h"
#include "shared/base/owned.h"
#include "shared/base/sync.h"

namespace pnfsrdma::http {

// Accepts what comes on a listening socket, which does not block: a thread per connection while it lasts. Who
// comes when there are too many is closed at once. Neither a failed accept nor a peer that has gone again
// ends it.
class Acceptor {
 public:
  struct Limits {
    size_t connections = 0;  // at once
    size_t per_peer = 0;     // of one address; of IPv6, of one network of 64 bits: a host has that many
  };
  struct Events {
    std::function<void(FileDescriptor socket)> serve;  // in the connection's thread; must not throw
    // In the acceptor's thread; at most once in kRefusalToldEvery, with how many there were since.
    std::function<void(const std::string& peer, const std::string& why, size_t count)> refused;
  };
  static constexpr Milliseconds kRefusalToldEvery{5000};
  // `listening` and `stopping` outlive this.
  Acceptor(int listening, Limits limits, std::atomic<bool>& stopping, Events events);
  // Sets `stopping`, accepts no more, and waits for the threads, which end by it.
  ~Acceptor();
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;

 private:
  struct Connections {
    size_t open = 0;
    std::map<std::string, size_t> by_peer;
  };
  void run();
  void accept_one();
  bool admit(const std::string& peer);
  void leave(const std::string& peer);
  void refuse(const std::string& peer, const std::string& why);

  const int listening_;
  const Limits limits_;
  std::atomic<bool>& stopping_;
  const Events events_;
  Guarded<Connections> connections_;
  Condition all_gone_;
  // The acceptor's thread's.
  size_t refused_ = 0;
  std::optional<SteadyTime> refusal_told_;
  Thread thread_;
};

// What the connections of this address (address_of_peer()) count for: itself, or its network of 64 bits.
std::string network_of_peer(const std::string& address);

}  // namespace pnfsrdma::http
