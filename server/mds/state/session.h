// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "server/mds/state/client.h"
#include "server/mds/state/slot.h"
#include "shared/nfs4/types.h"
#include "shared/rpc/connection.h"

namespace pnfsrdma::mds {

using SessionId = xdr::FixedOpaque<16>;

// One slot of the backchannel, where this server is the requester.
struct BackSlot {
  uint32_t seqid = 0;  // of the last CB_SEQUENCE sent
  bool busy = false;
  bool uncertain = false;  // the last call got no answer: the client may or may not have seen its seqid
};

// What the backchannel of a session needs to send: CREATE_SESSION and BACKCHANNEL_CTL fill it.
struct BackChannel {
  nfs4::ChannelAttributes attributes;
  uint32_t program = 0;
  uint32_t credential_flavor = 0;  // AUTH_NONE or AUTH_SYS, with csa_sec_parms' identity
  nfs4::CallbackSecurity security;
  std::vector<BackSlot> slots;
};

// One session (RFC 8881, 2.10). Owned by the SessionTable; lives no longer than its client.
class Session {
 public:
  Session(SessionId id, Client& client, nfs4::ChannelAttributes fore, BackChannel back);

  const SessionId& id() const { return id_; }
  Client& client() { return client_; }
  const nfs4::ChannelAttributes& fore() const { return fore_; }
  SlotTable& slots() { return slots_; }
  BackChannel& back() { return back_; }

  // Connections bound to each direction (RFC 8881, 2.10.3.1). They go by themselves when a connection dies.
  void bind_fore(const std::shared_ptr<rpc::Connection>& connection);
  void bind_back(const std::shared_ptr<rpc::Connection>& connection);
  bool bound_fore(const rpc::Connection& connection) const;
  // A live connection to call the client on, or null. The newest binding first.
  std::shared_ptr<rpc::Connection> back_connection();
  void unbind(const rpc::Connection& connection);

 private:
  SessionId id_;
  Client& client_;
  nfs4::ChannelAttributes fore_;
  SlotTable slots_;
  BackChannel back_;
  std::vector<std::weak_ptr<rpc::Connection>> fore_connections_;
  std::vector<std::weak_ptr<rpc::Connection>> back_connections_;
};

}  // namespace pnfsrdma::mds
