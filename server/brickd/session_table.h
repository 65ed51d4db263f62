// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <expected>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "server/brickd/connection.h"
#include "server/brickd/limits.h"
#include "server/brickd/pool.h"
#include "server/brickd/read_ahead.h"
#include "server/brickd/reaper.h"
#include "shared/base/deferred_destruction.h"
#include "shared/base/event_loop.h"
#include "shared/base/lifetime.h"
#include "shared/base/random.h"
#include "shared/brick/protocol.h"

namespace pnfsrdma::brick {

// Client sessions, their tickets, grants and data connections. A grant lives here from expose to withdraw;
// whether it is registered right now depends on whether its client is connected. Blocks under a grant are
// pinned in the block table until the handle is dead. Owned by the Brick; control loop only.
class SessionTable {
 public:
  struct Parts {
    EventLoop& loop;
    Pool& pool;
    Reaper& reaper;
    ReadAhead& read_ahead;
    DeferredDestruction& destruction;
    Random& random;
    Connection::Shared shared;
  };
  using Done = std::function<void()>;

  SessionTable(Parts parts, Limits limits);
  // Fails all connections first, then joins their threads and frees everything.
  ~SessionTable();

  Status open(uint64_t client, const xdr::FixedOpaque<kTicketSize>& ticket);  // kInvalid, kLimit
  // Expels; `done` when the handles are dead. kNotFound (then `done` is not called).
  Status close(uint64_t client, Done done);
  void close_all();
  // `done` when the handles of all sessions that have been closed so far are dead; at once or later.
  void when_ended_are_dead(Done done);

  ExposeResult expose(const ExposeArguments& arguments);
  // Always calls `done`, when the handles are dead.
  void withdraw(uint64_t client, const std::vector<uint64_t>& grants, Done done);

  // Of an open session, what it has been granted by these numbers.
  ExposeResult describe(uint64_t client, const std::vector<uint64_t>& grants) const;

  SessionsResult list() const;
  GrantsResult list_grants(uint64_t client, uint64_t after) const;
  size_t sessions() const { return sessions_.size(); }
  size_t grants() const { return grant_count_; }
  rdma::TransportCounters transport_counters() const;
  SessionTrafficResult traffic() const;

  // A connection knocks: in with the right ticket, replacing the client's old one; else rejected with the
  // reason. It is answered when the handles of the old one are dead, so that nothing of the old connection
  // can land behind the new one's hello, and when the client's grants are registered for it, so many a turn.
  // The newest of those that wait for that is let in, the others are rejected. So is whoever has
  // kConnectionsPerSessionMax that the device has not given up. A client with many grants that reconnects within
  // kKnockApart is put off, each time for longer (limits.h).
  void admit(rdma::Transport& transport, bool native_flush, std::unique_ptr<rdma::ConnectionRequest> request);

 private:
  struct GrantRecord {
    Piece piece;
    bool writable = false;
  };
  using Grants = std::map<uint64_t, GrantRecord>;
  // A connection that has knocked and is not answered yet.
  struct PendingConnection {
    rdma::Transport& transport;
    bool native_flush;
    xdr::FixedOpaque<kTicketSize> ticket;
    std::unique_ptr<rdma::ConnectionRequest> request;
    // From when its turn comes: nobody can reach what is registered there before it is answered.
    std::shared_ptr<Connection> connection = nullptr;
    std::vector<uint64_t> left = {};  // grants to be registered; some may be withdrawn by then
    void refuse(RejectReason reason);
  };
  struct Session {
    xdr::FixedOpaque<kTicketSize> ticket{};
    Grants grants;
    uint32_t last_connection = 0;
    std::shared_ptr<Connection> connection;
    std::shared_ptr<PendingConnection> pending;
    std::optional<SteadyTime> knocked;
    Milliseconds put_off{0};
    std::shared_ptr<ReplayRecord> record;                     // from the beginning to the end of the session
    std::shared_ptr<void> places = std::make_shared<char>();  // each connection holds one
    rdma::TransportCounters ended;                            // of its connections that are no more
    bool full() const { return static_cast<size_t>(places.use_count()) > kConnectionsPerSessionMax; }
  };

  Session* find(uint64_t client);
  Session* find_ticket(const xdr::FixedOpaque<kTicketSize>& ticket);
  Status refuse(std::string_view limit, size_t most);
  Milliseconds put_off(Session& session) const;
  void admit(uint64_t client, const std::shared_ptr<PendingConnection>& pending);
  void register_slice(uint64_t client, const std::shared_ptr<PendingConnection>& pending);
  Result<> connect(Session& session, uint64_t client, PendingConnection& pending);
  void disconnect(Session& session, Done done);
  void ended(uint64_t client, const std::shared_ptr<Connection>& connection);
  void end_session(Session session, Done done);
  Grant describe(uint64_t number, const GrantRecord& record, Connection* connection) const;
  uint64_t new_grant_number(const Session& session);
  bool register_grant(Connection& connection, uint64_t number, const GrantRecord& record);
  void unpin(Grants grants, Done done);
  void unpin_slice();

  Parts parts_;
  const Limits limits_;
  std::unordered_map<uint64_t, Session> sessions_;
  struct LiveConnection {
    std::shared_ptr<Connection> connection;
    const void* places;  // tells its session from a later one of the same client
  };
  std::vector<LiveConnection> connections_;  // all whose thread has not ended
  size_t grant_count_ = 0;
  std::optional<SteadyTime> refusal_told_;
  // Grants whose handles are dead, and who is told when their blocks are not pinned any more; in order.
  struct Unpinning {
    Grants grants;
    Done done;
  };
  std::deque<Unpinning> unpinning_;
  bool in_slice_ = false;
  rdma::TransportCounters ended_counters_;
  Lifetime lifetime_;
};

}  // namespace pnfsrdma::brick
