// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "shared/base/clock.h"
#include "shared/base/sync.h"
#include "shared/initiator/persistence.h"

namespace pnfsrdma::rdma {
class Transport;
}

namespace pnfsrdma::initiator {

// The addresses of one server as a source has them: "a,[::1]".
std::string hosts_text(const std::string& host, const std::vector<std::string>& others);

// How to reach an MDS and how patient to be.
struct SessionOptions {
  std::string host;
  // More addresses of the same server, or of hosts that take it over: asked in turn where it does not answer.
  std::vector<std::string> other_hosts;
  uint16_t port = 2049;
  // The connection is RPC-over-RDMA over the first of these that reaches the MDS; none: TCP.
  std::vector<std::shared_ptr<rdma::Transport>> rdma_transports;
  // eia_clientowner.co_ownerid: the same for the life of a mount, different for every other mount.
  std::string owner;
  // Where it is mounted, told to the server for its administrator; empty: nothing is told.
  std::string mount_point;

  Persistence persistence = Persistence::kHard;
  // One transmission; after 1 + `retransmissions` of them a soft call fails (nfs(5): timeo is in deciseconds
  // there).
  Milliseconds timeout = std::chrono::seconds(60);
  uint32_t retransmissions = 2;
  // The longest time start-up may take before it fails: connecting, EXCHANGE_ID, CREATE_SESSION, grace.
  Milliseconds start_timeout = std::chrono::seconds(30);

  uint32_t slots = 64;  // of the fore channel, asked for; one of them is the reserved one
  uint32_t message_size = (1u << 20) + (64u << 10);  // bytes of the longest request and reply, asked for
  uint32_t minor_version = 2;                        // tried first; 1 is tried when the server knows no 2

  // How long after the last call the idle poller starts to listen on the socket itself.
  Milliseconds idle_delay = std::chrono::milliseconds(10);
  // First and last pause between repetitions after NFS4ERR_DELAY and the like.
  Milliseconds delay_first = std::chrono::milliseconds(5);
  Milliseconds delay_max = std::chrono::seconds(1);
  // How long this host has been suspended: the server's lease runs on. Thread-safe.
  std::function<std::chrono::nanoseconds()> slept = slept_so_far;

  // So long without a reply, and the connection counts as lost. With others to ask, that is soon.
  Milliseconds silence() const {
    return other_hosts.empty() ? timeout : std::min<Milliseconds>(timeout, std::chrono::seconds(5));
  }
  // The patience of a soft mount, from the start of a call.
  Milliseconds soft_limit() const { return timeout * (1 + retransmissions); }
};

}  // namespace pnfsrdma::initiator
