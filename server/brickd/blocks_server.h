// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "server/brickd/blocks_service.h"
#include "shared/base/event_loop.h"
#include "shared/rpc/connection.h"
#include "shared/rpc/server.h"

namespace pnfsrdma::brick {

// The program of a partition's owner on its sockets: lets in whoever has the key, by TLS, and nobody else to anything;
// decodes calls, has the service answer them, encodes. From an address from which somebody has shown a wrong key
// nobody gets further for a second; of those who come by a Unix socket, no process of that user. Owned by the Brick;
// control loop only.
class BlocksServer {
 public:
  // `key`: makes the sessions.
  BlocksServer(EventLoop& loop, BlocksService& service, std::shared_ptr<rpc::TlsEndpoint> key);
  // Closes all connections.
  ~BlocksServer();

  // "host:port" or a path; returns it with the port filled in.
  Result<std::string> listen(const std::string& address);

 private:
  struct Peer {
    rpc::ConnectionPointer connection;
    std::string host;
    bool let_in = false;
    uint64_t attachment = 0;  // the last one it spoke for
  };

  void accepted(const rpc::ConnectionPointer& connection);
  void closed(const rpc::ConnectionPointer& connection, const Error& reason);
  void refused(const Peer& peer, const Error& reason);
  bool is_put_off(const std::string& host);
  void handle(const rpc::ConnectionPointer& connection, const rpc::IncomingCall& call,
              rpc::Responder responder);
  void attached(const rpc::ConnectionPointer& connection, uint64_t attachment);
  void attach(const rpc::ConnectionPointer& connection, ByteSpan encoded, rpc::Responder responder);
  template <typename Arguments, typename Answer>
  void serve(Peer& peer, ByteSpan encoded, rpc::Responder responder,
             void (BlocksService::*method)(const Arguments&, BlocksService::Done<Answer>));

  EventLoop& loop_;
  BlocksService& service_;
  const std::shared_ptr<rpc::TlsEndpoint> key_;
  rpc::MemoryBudget memory_;  // outlives the connections, which ~BlocksServer() ends
  std::unordered_map<const rpc::Connection*, Peer> peers_;
  std::vector<std::unique_ptr<rpc::Listener>> listeners_;
  std::map<std::string, SteadyTime> failed_;  // hosts or users, and until when they are put off
  struct Refusals {
    SteadyTime logged;
    uint64_t count = 0;
  };
  Refusals wrong_keys_, others_;
};

}  // namespace pnfsrdma::brick
