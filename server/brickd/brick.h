// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "server/brickd/boot_id.h"
#include "server/brickd/limits.h"
#include "shared/base/clock.h"
#include "shared/base/result.h"
#include "shared/brick/control.h"

namespace pnfsrdma {
class EventLoop;
class Random;
}  // namespace pnfsrdma
namespace pnfsrdma::rdma {
class Transport;
}
namespace pnfsrdma::rpc {
class TlsEndpoint;
}

namespace pnfsrdma::brick {

class Pool;

struct BrickOptions {
  // How long grants outlive the last sign of life of the MDS that claimed the brick.
  Milliseconds lease{30000};
  Limits limits;
};

// Where clients reach the brick's memory, and what the MDS tells them about it.
struct DataEndpoint {
  std::string listen;         // "127.0.0.1:20051"; port 0 takes any
  std::string netid = "tcp";  // "tcp" for iwarp, "rdma" for verbs (6 added for IPv6), "memory" in-process
  std::vector<std::string> advertise;  // "host:port"; empty: the address listened on
  bool advertised = true;              // false: served, but the MDS is not told
};

// A brick: one pool, its sessions and grants, its control and data listeners. What main() builds, and what
// tests build in their own process:
//
//   SystemClock clock; SystemRandom random; EventLoop loop(clock);
//   auto pool = Pool::in_memory(64, random);                      // 64 blocks of 2 MiB
//   Brick brick(loop, std::move(*pool), BootId{}, random, BrickOptions{});
//   const auto data = brick.listen_data(transport, {.listen = "brick-1", .netid = "memory"});
//   brick.control().claim({.epoch = 1, .owner = "test"}, [](Result<ClaimResult> claimed) { … });
//   while (…) loop.run_once(Milliseconds(10));
//
// `boot` names this boot of the host (read_boot_id(); a constant in tests): part of the verifier, see
// flush_gate.h. Belongs to the thread of `loop`. Loop, random and transports must outlive it. The destructor
// is the clean shutdown: it expels all sessions, joins its threads and returns when no byte of the pool can
// be touched any more.
class Brick {
 public:
  Brick(EventLoop& loop, std::unique_ptr<Pool> pool, const BootId& boot, Random& random,
        BrickOptions options);
  ~Brick();
  Brick(const Brick&) = delete;
  Brick& operator=(const Brick&) = delete;

  // The calls of an MDS, without a socket between.
  Control& control();

  // Lets data connections in; may be called once per transport and address. Returns "host:port" as bound. An
  // error (EINVAL: it would be the 17th address that the MDS is told) changes nothing.
  Result<std::string> listen_data(rdma::Transport& transport, const DataEndpoint& endpoint);

  // Serves the control program on a Unix socket (mode 0600; a stale socket file is replaced), or on TCP: by TLS only
  // (RFC 9289); without `tls` to anybody, for trusted networks. The TCP form returns "host:port" as bound.
  Result<> serve_control_unix(const std::string& path);
  Result<std::string> serve_control_tcp(const std::string& address,
                                        std::shared_ptr<rpc::TlsEndpoint> tls = nullptr);
  // Whether it is a partition with an owner of its own.
  bool has_owner_by_key() const;
  // Of a partition with an owner of its own, in place of the control program: the owner's (blocks_protocol.h), for
  // whoever has the key. "host:port", or "unix:/path", which anybody may knock at.
  Result<std::string> serve_owner(const std::string& address);
  // Ends the control connections of those whom `tls` would not let in any more.
  void reassess_tls();

 private:
  class Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace pnfsrdma::brick
