// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "server/mds/state/session_table.h"
#include "shared/base/event_loop.h"
#include "shared/base/lifetime.h"
#include "shared/rpc/connection.h"

namespace pnfsrdma::mds {

// Ends the connections of clients that have vanished: nobody tells a server that is not sending, least of all
// over RDMA, and each costs memory and a place. A client that lives renews its lease, so a connection that
// has brought nothing for two leases and belongs to no session is of no use to anybody. Where a client hears
// its callbacks (RFC 8881, 2.10.3.1) it is sent a CB_NULL, which no vanished peer acknowledges: then the
// transport ends it. One that only brings requests of a session is left to TCP's keepalive; RDMA devices
// have none, so over RDMA it ends: who is behind it after all connects again for the next request. Control
// loop only.
class IdleConnections {
 public:
  IdleConnections(EventLoop& loop, SessionTable& sessions, Milliseconds lease);
  IdleConnections(const IdleConnections&) = delete;
  IdleConnections& operator=(const IdleConnections&) = delete;

  // From now on. What is closed is forgotten.
  void watch(const rpc::ConnectionPointer& connection);
  // Looks once a lease, as long as the loop runs. What it finds ends, or is called, so many a turn.
  void start();
  void look();

 private:
  struct Watched {
    std::weak_ptr<rpc::Connection> connection;
    uint64_t messages = UINT64_MAX;  // come until the last look; at first none has been
    int silent_looks = 0;            // in a row
  };

  // One that has been found silent, and the session that it is of, if any.
  struct Silent {
    rpc::ConnectionPointer connection;
    std::shared_ptr<Session> owner;
  };

  std::vector<rpc::ConnectionPointer> silent();
  void end_later();
  void end_some();
  void end_or_probe(const Silent& silent);
  void probe(rpc::Connection& connection, Session& session);

  EventLoop& loop_;
  SessionTable& sessions_;
  const Milliseconds lease_;
  std::vector<Watched> watched_;
  std::vector<Silent> found_;  // of the last look, and not yet dealt with
  Lifetime lifetime_;
};

}  // namespace pnfsrdma::mds
