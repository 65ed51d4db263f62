// SPDX-License-Identifier: Apache-2.0
#include "server/brickd/session_table.h"

#include <openssl/crypto.h>

#include <algorithm>
#include <utility>

#include "shared/base/log.h"
#include "shared/brick/session_codec.h"

namespace pnfsrdma::brick {
namespace {

void add(rdma::TransportCounters& sum, const rdma::TransportCounters& more) {
  sum.responder_write_bytes += more.responder_write_bytes;
  sum.responder_write_operations += more.responder_write_operations;
  sum.responder_read_bytes += more.responder_read_bytes;
  sum.responder_read_operations += more.responder_read_operations;
  sum.responder_flush_operations += more.responder_flush_operations;
}

}  // namespace

SessionTable::SessionTable(Parts parts, Limits limits) : parts_(parts), limits_(limits) {}

SessionTable::~SessionTable() {
  lifetime_.end();
  for (const auto& live : connections_) live.connection->fail();
  // Not only let go: what waits in the loop may hold one, and its thread would post to the loop as that ends.
  for (const auto& live : connections_) live.connection->end();
  sessions_.clear();
  connections_.clear();
}

SessionTable::Session* SessionTable::find(uint64_t client) {
  const auto found = sessions_.find(client);
  return found == sessions_.end() ? nullptr : &found->second;
}

// Every ticket is compared, each in constant time: how long it takes says nothing about how near a guess was.
SessionTable::Session* SessionTable::find_ticket(const xdr::FixedOpaque<kTicketSize>& ticket) {
  Session* match = nullptr;
  for (auto& [client, session] : sessions_) {
    if (CRYPTO_memcmp(session.ticket.data(), ticket.data(), ticket.size()) == 0) match = &session;
  }
  return match;
}

Status SessionTable::open(uint64_t client, const xdr::FixedOpaque<kTicketSize>& ticket) {
  // A ticket of zeros is a client that was given none; one that another client holds would let in the wrong
  // one.
  if (client == 0 || ticket == xdr::FixedOpaque<kTicketSize>{}) return Status::kInvalid;
  Session* session = find(client);
  const Session* holder = find_ticket(ticket);
  if (holder != nullptr && holder != session) return Status::kInvalid;
  if (session == nullptr) {
    if (sessions_.size() >= limits_.sessions) return refuse("sessions", limits_.sessions);
    session = &sessions_[client];
    session->record = std::make_shared<ReplayRecord>(parts_.random.next_u64());
    log_info("brick", "session-opened client={}", client);
  }
  session->ticket = ticket;
  return Status::kOk;
}

Status SessionTable::close(uint64_t client, Done done) {
  auto node = sessions_.extract(client);
  if (!node) return Status::kNotFound;
  log_info("brick", "session-closed client={} grants={}", client, node.mapped().grants.size());
  end_session(std::move(node.mapped()), std::move(done));
  return Status::kOk;
}

void SessionTable::close_all() {
  for (auto& [client, session] : std::exchange(sessions_, {})) end_session(std::move(session), [] {});
}

void SessionTable::when_ended_are_dead(Done done) {
  parts_.reaper.destroy({}, [this, done = std::move(done)] { unpin({}, done); });
}

// Queue pair to the error state, then the exposures, then (when its thread has ended) the queue pair goes.
void SessionTable::end_session(Session session, Done done) {
  if (session.pending) session.pending->refuse(RejectReason::kTicket);
  const auto grants = std::make_shared<Grants>(std::move(session.grants));
  disconnect(session, [this, grants, done = std::move(done)] { unpin(std::move(*grants), done); });
}

// Without a connection there may be an earlier one whose regions are still dying: the reaper keeps the order.
void SessionTable::disconnect(Session& session, Done done) {
  const std::shared_ptr<Connection> connection = std::exchange(session.connection, nullptr);
  if (connection) connection->fail();
  parts_.reaper.destroy_all(connection, std::move(done));
}

void SessionTable::unpin(Grants grants, Done done) {
  unpinning_.push_back({std::move(grants), std::move(done)});
  if (unpinning_.size() == 1 && !in_slice_) unpin_slice();
}

// A block stays pinned until its turn comes: nobody gets it before.
void SessionTable::unpin_slice() {
  in_slice_ = true;
  for (size_t left = kUnpinnedPerTurn; !unpinning_.empty();) {
    Grants& grants = unpinning_.front().grants;
    for (; !grants.empty() && left > 0; --left, --grant_count_) {
      parts_.pool.table().unpin(grants.begin()->second.piece);
      grants.erase(grants.begin());
    }
    if (!grants.empty()) break;
    const Done done = std::move(unpinning_.front().done);
    unpinning_.pop_front();
    done();
  }
  in_slice_ = false;
  if (unpinning_.empty()) return;
  parts_.loop.post(lifetime_.guard([this] { unpin_slice(); }));
}

// By a limit that all clients share. Who is refused asks again and again: the log says it once a minute.
Status SessionTable::refuse(std::string_view limit, size_t most) {
  const SteadyTime now = parts_.loop.now();
  if (!refusal_told_ || now - *refusal_told_ >= kRefusalToldApart) {
    refusal_told_ = now;
    log_warning("brick",
                "limit-met limit=limits.{} most={} what=\"clients without a grant do I/O through the MDS\"",
                limit, most);
  }
  return Status::kLimit;
}

uint64_t SessionTable::new_grant_number(const Session& session) {
  for (;;) {
    const uint64_t number = parts_.random.next_u64();
    if (number != 0 && !session.grants.contains(number)) return number;
  }
}

bool SessionTable::register_grant(Connection& connection, uint64_t number, const GrantRecord& record) {
  const auto remote = connection.expose(number, parts_.pool.memory(record.piece), record.writable);
  if (!remote) log_warning("brick", "register-failed error=\"{}\"", remote.error().to_string());
  return remote.has_value();
}

Grant SessionTable::describe(uint64_t number, const GrantRecord& record, Connection* connection) const {
  Grant grant{number, record.piece.logical, record.piece.length, record.writable};
  if (connection == nullptr) return grant;
  if (const auto remote = connection->exposures().handle(number)) {
    grant.handle = remote->key;
    grant.address = remote->address;
  }
  return grant;
}

ExposeResult SessionTable::expose(const ExposeArguments& arguments) {
  ExposeResult result;
  Session* session = find(arguments.client);
  if (session == nullptr) return {Status::kNotFound};
  const auto pieces = parts_.pool.table().resolve(arguments.logical, arguments.length);
  if (!pieces) return {pieces.error()};
  if (pieces->size() > kGrantsPerCallMax ||
      session->grants.size() + pieces->size() > limits_.grants_per_session)
    return {Status::kLimit};
  if (grant_count_ + pieces->size() > limits_.registrations)
    return {refuse("registrations", limits_.registrations)};

  Connection* connection = session->connection.get();
  for (const Piece& piece : *pieces) {
    const uint64_t number = new_grant_number(*session);
    const GrantRecord record{piece, arguments.writable};
    if (connection != nullptr && !register_grant(*connection, number, record)) {
      result.status = Status::kLimit;
      break;
    }
    parts_.pool.table().pin(piece);
    parts_.read_ahead.granted(parts_.pool.memory(piece));
    ++grant_count_;
    session->grants.emplace(number, record);
    if (session->pending && session->pending->connection) session->pending->left.push_back(number);
    result.grants.push_back(describe(number, record, connection));
  }
  if (result.status != Status::kOk) {
    std::vector<uint64_t> undone;
    for (const Grant& grant : result.grants) undone.push_back(grant.grant);
    withdraw(arguments.client, undone, [] {});
    return {result.status};
  }
  result.connection = connection == nullptr ? 0 : connection->number();
  return result;
}

ExposeResult SessionTable::describe(uint64_t client, const std::vector<uint64_t>& grants) const {
  const auto session = sessions_.find(client);
  if (session == sessions_.end()) return {Status::kNotFound};
  Connection* const connection = session->second.connection.get();
  ExposeResult result{.connection = connection == nullptr ? 0 : connection->number()};
  for (const uint64_t number : grants) {
    const auto found = session->second.grants.find(number);
    if (found != session->second.grants.end())
      result.grants.push_back(SessionTable::describe(number, found->second, connection));
  }
  return result;
}

void SessionTable::withdraw(uint64_t client, const std::vector<uint64_t>& grants, Done done) {
  Session* session = find(client);
  if (session == nullptr) return when_ended_are_dead(std::move(done));
  // Of a pending connection whose grants are being registered, too.
  const std::shared_ptr<Connection> connection =
      session->pending ? session->pending->connection : session->connection;
  Regions regions;
  const auto dead = std::make_shared<Grants>();
  for (const uint64_t number : grants) {
    if (!dead->insert(session->grants.extract(number)).inserted || !connection) continue;
    if (auto region = connection->withdraw(number)) regions.push_back(std::move(region));
  }
  parts_.reaper.destroy(std::move(regions),
                        [this, dead, connection, done = std::move(done)] { unpin(std::move(*dead), done); });
}

SessionsResult SessionTable::list() const {
  SessionsResult result;
  for (const auto& [client, session] : sessions_) {
    SessionEntry entry{.client = client, .grants = static_cast<uint32_t>(session.grants.size())};
    if (session.connection) {
      entry.connection = session.connection->number();
      entry.peer = session.connection->peer().substr(0, entry.peer.kMax);
      entry.transport = session.connection->transport().substr(0, entry.transport.kMax);
    }
    result.sessions.push_back(std::move(entry));
  }
  return result;
}

GrantsResult SessionTable::list_grants(uint64_t client, uint64_t after) const {
  const auto found = sessions_.find(client);
  if (found == sessions_.end()) return {Status::kNotFound};
  GrantsResult result;
  const Grants& grants = found->second.grants;
  auto next = grants.upper_bound(after);
  for (; next != grants.end() && result.grants.size() < kListedGrantsPerCall; ++next)
    result.grants.push_back(describe(next->first, next->second, found->second.connection.get()));
  result.more = next != grants.end();
  return result;
}

rdma::TransportCounters SessionTable::transport_counters() const {
  rdma::TransportCounters sum = ended_counters_;
  for (const auto& live : connections_) add(sum, live.connection->counters());
  return sum;
}

// A connection counts for its session until its thread has ended: a sum never falls.
SessionTrafficResult SessionTable::traffic() const {
  std::unordered_map<const void*, rdma::TransportCounters> live;
  for (const auto& [connection, places] : connections_) add(live[places], connection->counters());
  SessionTrafficResult result;
  for (const auto& [client, session] : sessions_) {
    rdma::TransportCounters sum = session.ended;
    if (const auto found = live.find(session.places.get()); found != live.end()) add(sum, found->second);
    result.sessions.push_back({.client = client,
                               .read_bytes = sum.responder_read_bytes,
                               .write_bytes = sum.responder_write_bytes,
                               .reads = sum.responder_read_operations,
                               .writes = sum.responder_write_operations});
  }
  return result;
}

void SessionTable::PendingConnection::refuse(RejectReason reason) {
  log_warning("brick", "connection-refused peer={} reason={}", request->peer(),
              static_cast<uint32_t>(reason));
  request->reject(encode_reject(reason));
}

void SessionTable::admit(rdma::Transport& transport, bool native_flush,
                         std::unique_ptr<rdma::ConnectionRequest> request) {
  const auto data = decode_connect(request->private_data());
  const auto pending = std::make_shared<PendingConnection>(PendingConnection{
      transport, native_flush, data ? data->ticket : xdr::FixedOpaque<kTicketSize>{}, std::move(request)});
  if (!data || data->version != kSessionVersion) return pending->refuse(RejectReason::kVersion);
  Session* session = find_ticket(data->ticket);
  if (session == nullptr) return pending->refuse(RejectReason::kTicket);
  if (session->full()) return pending->refuse(RejectReason::kBusy);
  const uint64_t client =
      std::ranges::find_if(sessions_, [&](const auto& entry) { return &entry.second == session; })->first;
  if (session->pending) session->pending->refuse(RejectReason::kBusy);
  session->pending = pending;
  const Milliseconds put_off = this->put_off(*session);
  const auto enter =
      lifetime_.guard([this, client, waiting = std::weak_ptr(pending)] { admit(client, waiting.lock()); });
  disconnect(*session, [put_off, enter, &loop = parts_.loop] {
    if (put_off == Milliseconds(0)) return enter();
    loop.after(put_off, enter);
  });
}

// What registering its grants costs everybody is bounded by how often it may have that.
Milliseconds SessionTable::put_off(Session& session) const {
  const SteadyTime now = parts_.loop.now();
  const bool again = session.knocked && now - *session.knocked < kKnockApart;
  session.knocked = now;
  if (!again || session.grants.size() <= kRegisteredPerTurn) return session.put_off = Milliseconds(0);
  return session.put_off = std::clamp(session.put_off * 2, kPutOffShortest, kPutOffLongest);
}

// The handles of all earlier connections are dead. Meanwhile a newer one may have come, or the session may be
// gone.
void SessionTable::admit(uint64_t client, const std::shared_ptr<PendingConnection>& pending) {
  Session* session = find(client);
  if (session == nullptr || !pending || session->pending != pending) return;
  if (++session->last_connection == 0) ++session->last_connection;
  pending->connection = parts_.destruction.adopt(
      std::make_unique<Connection>(pending->transport, pending->native_flush, session->last_connection,
                                   parts_.shared, session->record, session->places));
  pending->left.reserve(session->grants.size());
  for (const auto& [number, record] : session->grants) pending->left.push_back(number);
  register_slice(client, pending);
}

// Regions first, in a domain nobody else has: when the peer is answered, its hello finds them all. Between
// two slices the session may be gone or have another ticket, and grants come and go.
void SessionTable::register_slice(uint64_t client, const std::shared_ptr<PendingConnection>& pending) {
  const EventLoop::Step step(parts_.loop, "register-grants", client);
  Session* session = find(client);
  if (session == nullptr || !pending || session->pending != pending) return;
  const SteadyTime limit = parts_.loop.now() + kRegisteringTurn;
  for (size_t i = 0; i < kRegisteredPerTurn && !pending->left.empty(); ++i) {
    const auto grant = session->grants.find(pending->left.back());
    pending->left.pop_back();
    if (grant == session->grants.end()) continue;
    if (!register_grant(*pending->connection, grant->first, grant->second)) {
      log_warning("brick", "connection-failed client={} error=\"could not register its {} grants\"", client,
                  session->grants.size());
      session->pending.reset();
      return pending->refuse(RejectReason::kBusy);
    }
    if (parts_.loop.now() > limit) break;
  }
  if (!pending->left.empty()) {
    return parts_.loop.post(lifetime_.guard(
        [this, client, waiting = std::weak_ptr(pending)] { register_slice(client, waiting.lock()); }));
  }
  session->pending.reset();
  if (CRYPTO_memcmp(session->ticket.data(), pending->ticket.data(), pending->ticket.size()) != 0) {
    return pending->refuse(RejectReason::kTicket);
  }
  if (const auto result = connect(*session, client, *pending); !result)
    log_warning("brick", "connection-failed client={} error=\"{}\"", client, result.error().to_string());
}

Result<> SessionTable::connect(Session& session, uint64_t client, PendingConnection& pending) {
  session.connection = std::move(pending.connection);
  const auto ended_here = lifetime_.guard(
      [this, client, connection = std::weak_ptr(session.connection)] { ended(client, connection.lock()); });
  const auto tell = [&loop = parts_.loop, ended_here] { loop.post(ended_here); };
  if (auto result = session.connection->accept(*pending.request, tell); !result) {
    session.connection.reset();
    return result;
  }
  connections_.push_back({session.connection, session.places.get()});
  log_info("brick", "connected client={} connection={} transport={} peer={} grants={}", client,
           session.last_connection, pending.transport.name(), session.connection->peer(),
           session.grants.size());
  return {};
}

void SessionTable::ended(uint64_t client, const std::shared_ptr<Connection>& connection) {
  if (!connection) return;
  add(ended_counters_, connection->counters());
  Session* session = find(client);
  std::erase_if(connections_, [&](const LiveConnection& live) {
    if (live.connection != connection) return false;
    if (session != nullptr && live.places == session->places.get())
      add(session->ended, connection->counters());
    return true;
  });
  log_info("brick", "disconnected client={} connection={}", client, connection->number());
  if (session != nullptr && session->connection == connection) disconnect(*session, [] {});
}

}  // namespace pnfsrdma::brick
