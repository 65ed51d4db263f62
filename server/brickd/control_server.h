// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "server/brickd/control_service.h"
#include "shared/base/event_loop.h"
#include "shared/rpc/connection.h"
#include "shared/rpc/server.h"

namespace pnfsrdma::brick {

// The control program on its sockets: decodes calls, has the service answer them, encodes. A connection that
// has made a call under the claimed epoch is the MDS's: whatever comes on it keeps the lease alive, null
// calls too. Owned by the Brick; control loop only.
class ControlServer {
 public:
  ControlServer(EventLoop& loop, ControlService& service);
  // Closes all connections.
  ~ControlServer();

  // "host:port" or a path; returns it with the port filled in. With `tls`, calls are answered only within it
  // (RFC 9289).
  Result<std::string> listen(const std::string& address, std::shared_ptr<rpc::TlsEndpoint> tls = nullptr);
  // Ends the connections of those whom `tls` would not let in any more.
  void reassess_tls();
  // Ends the connections of the MDS with this epoch, so that it begins again.
  void disconnect(uint64_t epoch);

 private:
  struct Peer {
    rpc::ConnectionPointer connection;
    uint64_t epoch = 0;   // the last one it used
    bool let_in = false;  // the log knows it
  };

  rpc::Service service_for(std::shared_ptr<rpc::TlsEndpoint> tls);
  void let_in(const rpc::ConnectionPointer& connection);
  void closed(const rpc::ConnectionPointer& connection, const Error& reason);
  void handle(const rpc::ConnectionPointer& connection, rpc::IncomingCall call, rpc::Responder responder);
  void note_epoch(const rpc::Connection* connection, uint64_t epoch);
  void dispatch(const rpc::Connection* connection, const rpc::IncomingCall& call, rpc::Responder responder);
  template <typename Arguments, typename Answer>
  void serve(const rpc::Connection* connection, Procedure procedure, ByteSpan encoded,
             rpc::Responder responder,
             void (ControlService::*method)(const Arguments&, Control::Done<Answer>));
  template <typename Answer>
  void serve(ByteSpan encoded, rpc::Responder responder,
             void (ControlService::*method)(Control::Done<Answer>));

  EventLoop& loop_;
  ControlService& service_;
  rpc::MemoryBudget memory_;  // outlives the connections, which ~ControlServer() ends
  std::unordered_map<const rpc::Connection*, Peer> peers_;
  std::vector<std::unique_ptr<rpc::Listener>> listeners_;
  SteadyTime refusal_logged_{};
  uint64_t refused_ = 0;
};

}  // namespace pnfsrdma::brick
