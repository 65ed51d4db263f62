// SPDX-License-Identifier: Apache-2.0
#include "server/mds/state/idle_connections.h"

#include <unordered_map>

#include "shared/base/log.h"
#include "shared/nfs4/limits.h"

namespace pnfsrdma::mds {
namespace {

// A lease apart.
constexpr int kSilentLooks = 2;
// Connections that end, or are sent a CB_NULL, in one turn: about a millisecond.
constexpr size_t kEndsPerTurn = 64;

}  // namespace

IdleConnections::IdleConnections(EventLoop& loop, SessionTable& sessions, Milliseconds lease)
    : loop_(loop), sessions_(sessions), lease_(lease) {}

void IdleConnections::watch(const rpc::ConnectionPointer& connection) {
  watched_.push_back({.connection = connection});
}

void IdleConnections::start() {
  loop_.after(lease_, lifetime_.guard([this] {
    look();
    start();
  }));
}

std::vector<rpc::ConnectionPointer> IdleConnections::silent() {
  std::vector<rpc::ConnectionPointer> silent;
  std::erase_if(watched_, [&](Watched& watched) {
    const rpc::ConnectionPointer connection = watched.connection.lock();
    if (!connection || !connection->is_open()) return true;
    const uint64_t messages = std::exchange(watched.messages, connection->messages_received());
    const bool busy = messages != watched.messages || connection->calls_unanswered() > 0;
    watched.silent_looks = busy ? 0 : watched.silent_looks + 1;
    if (watched.silent_looks >= kSilentLooks) silent.push_back(connection);
    return false;
  });
  return silent;
}

void IdleConnections::look() {
  const EventLoop::Step step(loop_, "idle-connections");
  const auto silent_ones = silent();
  if (silent_ones.empty() || !found_.empty()) return;
  // Of several sessions one whose backchannel it is.
  std::unordered_map<const rpc::Connection*, std::shared_ptr<Session>> owners;
  for (const auto& connection : silent_ones) owners.emplace(connection.get(), nullptr);
  for (const auto& [id, session] : sessions_.all()) {
    for (const auto& connection : session->connections()) {
      const auto owner = owners.find(connection.get());
      if (owner != owners.end() && (!owner->second || session->bound_back(*connection)))
        owner->second = session;
    }
  }
  for (const auto& connection : silent_ones) found_.push_back({connection, owners.at(connection.get())});
  end_later();
}

void IdleConnections::end_later() {
  loop_.at_own_turn(lifetime_.guard([this] { end_some(); }));
}

void IdleConnections::end_some() {
  const EventLoop::Step step(loop_, "idle-connections");
  for (size_t i = 0; i < kEndsPerTurn && !found_.empty(); ++i) {
    const Silent silent = std::move(found_.back());
    found_.pop_back();
    end_or_probe(silent);
  }
  if (!found_.empty()) end_later();
}

void IdleConnections::end_or_probe(const Silent& silent) {
  rpc::Connection& connection = *silent.connection;
  if (!connection.is_open()) return;
  if (silent.owner && silent.owner->bound_back(connection)) return probe(connection, *silent.owner);
  if (silent.owner && !connection.is_rdma()) return;
  log_info("mds", "idle-connection-closed peer={} transport={} what=\"{}, silent for two leases\"",
           connection.peer(), connection.transport(), silent.owner ? "no backchannel" : "no session");
  connection.close();
}

// What the client answers is all the same: that is a message, too.
void IdleConnections::probe(rpc::Connection& connection, Session& session) {
  if (connection.calls_outstanding() > 0) return;
  connection.call(session.back().program, nfs4::kCallbackVersion, nfs4::kProcedureNull,
                  session.back().credential, {}, lease_, [](const Result<rpc::Reply>&) {});
}

}  // namespace pnfsrdma::mds
