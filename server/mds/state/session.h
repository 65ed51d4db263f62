// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "server/mds/state/client.h"
#include "server/mds/state/slot.h"
#include "shared/nfs4/session_operations.h"
#include "shared/rpc/connection.h"
#include "shared/rpc/memory_budget.h"

namespace pnfsrdma::mds {

using SessionId = xdr::FixedOpaque<16>;

// One slot of the backchannel, where this server is the requester.
struct BackSlot {
  uint32_t seqid = 0;  // of the last CB_SEQUENCE sent
  bool busy = false;
  bool broken = false;     // the client and we disagree about its seqid: never used again
  bool uncertain = false;  // that one got no answer: the client may or may not have seen its seqid
};

// What calling the client back takes. CREATE_SESSION and BACKCHANNEL_CTL fill it.
struct BackChannel {
  nfs4::ChannelAttributes attributes;
  bool wanted = false;  // the client has asked for one
  uint32_t minor_version = 0;
  uint32_t program = 0;
  rpc::OpaqueAuth credential;
  std::vector<BackSlot> slots;
};

// What a slot costs that keeps an answer of so many bytes.
inline size_t reply_slot_bytes(uint32_t cached_bytes) {
  constexpr size_t kLeast = 512;  // what an answer has reserved, however short it is
  return std::max<size_t>(cached_bytes, kLeast) + sizeof(Slot) + 64;
}

// What a session costs besides: itself, its places in the indexes, its backchannel.
inline constexpr size_t kSessionBytes = 2048;

// One session (RFC 8881, 2.10). Shared by the SessionTable and the COMPOUNDs that run in it; destroyed()
// tells those that it is no longer in the table.
class Session {
 public:
  Session(const SessionId& id, std::shared_ptr<Client> client, const nfs4::ChannelAttributes& fore,
          BackChannel back);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  const SessionId& id() const { return id_; }
  Client& client() { return *client_; }
  const std::shared_ptr<Client>& shared_client() const { return client_; }
  const nfs4::ChannelAttributes& fore() const { return fore_; }
  SlotTable& slots() { return slots_; }
  // Memory for the answers of all its slots, until it ends; null: nobody counts. False: there is not enough.
  bool reserve(rpc::MemoryBudget* memory);
  // Asks the client to use only slots that fit into so much, or (`grow`) lets it use more again, where there
  // is memory. Slots that it has shown not to use any more go with give_back_slots().
  void limit_reply_cache(size_t bytes, bool grow);
  // Behind SlotTable::begin(), which may have dropped some.
  void give_back_slots();
  BackChannel& back() { return back_; }
  bool destroyed() const { return destroyed_; }
  void set_destroyed() { destroyed_ = true; }
  // It has DoneRecords.
  bool has_changed() const { return has_changed_; }
  void note_change() { has_changed_ = true; }

  // Connections bound to each direction (RFC 8881, 2.10.3.1). A dead connection is bound to nothing.
  void bind_fore(const rpc::ConnectionPointer& connection) { bind(fore_connections_, connection); }
  void bind_back(const rpc::ConnectionPointer& connection) { bind(back_connections_, connection); }
  bool bound(const rpc::Connection& connection) const;
  bool bound_back(const rpc::Connection& connection) const;
  // A live connection to call the client on, the newest first, or null.
  rpc::ConnectionPointer back_connection() const;
  // Its live connections, those bound to both directions twice.
  std::vector<rpc::ConnectionPointer> connections() const;
  // The other ends of its live connections.
  std::vector<std::string> peers() const;
  // What carries the newest of them: "tcp", "rdma-verbs", …; "none": there is none.
  std::string transport() const;
  // It does not answer: SEQUENCE shows the path as down until the client binds one again.
  void unbind_back(const rpc::Connection& connection);

 private:
  using Connections = std::vector<std::weak_ptr<rpc::Connection>>;
  size_t cost_of(size_t slots) const;
  static void bind(Connections& connections, const rpc::ConnectionPointer& connection);
  static bool contains(const Connections& connections, const rpc::Connection& connection);
  static rpc::ConnectionPointer newest(const Connections& connections);

  SessionId id_;
  std::shared_ptr<Client> client_;
  nfs4::ChannelAttributes fore_;
  SlotTable slots_;
  rpc::MemoryBudget* memory_ = nullptr;
  size_t reserved_ = 0;
  BackChannel back_;
  bool destroyed_ = false;
  bool has_changed_ = false;
  Connections fore_connections_;
  Connections back_connections_;
};

}  // namespace pnfsrdma::mds
