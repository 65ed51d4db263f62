// SPDX-License-Identifier: Apache-2.0
#include "server/mds/state/idle_connections.h"

#include <unordered_map>

#include "shared/base/log.h"
#include "shared/nfs4/limits.h"

namespace pnfsrdma::mds {
namespace {

// A lease apart.
constexpr int kSilentLooks = 2;

}  // namespace

IdleConnections::IdleConnections(EventLoop& loop, SessionTable& sessions, Milliseconds lease)
    : loop_(loop), sessions_(sessions), lease_(lease) {}

void IdleConnections::watch(const rpc::ConnectionPointer& connection) {
  watched_.push_back({.connection = connection});
}

void IdleConnections::start() {
  loop_.after(lease_, [this] {
    look();
    start();
  });
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
  const auto silent_ones = silent();
  if (silent_ones.empty()) return;
  // Of several sessions one whose backchannel it is.
  std::unordered_map<const rpc::Connection*, Session*> owners;
  for (const auto& [id, session] : sessions_.all()) {
    for (const auto& connection : session->connections()) {
      Session*& owner = owners[connection.get()];
      if (owner == nullptr || session->bound_back(*connection)) owner = session.get();
    }
  }
  for (const auto& connection : silent_ones) {
    const auto owner = owners.find(connection.get());
    if (owner != owners.end() && owner->second->bound_back(*connection)) {
      probe(*connection, *owner->second);
    } else if (owner == owners.end() || connection->is_rdma()) {
      log_info("mds", "idle-connection-closed peer={} transport={} what=\"{}, silent for two leases\"",
               connection->peer(), connection->transport(),
               owner == owners.end() ? "no session" : "no backchannel");
      connection->close();
    }
  }
}

// What the client answers is all the same: that is a message, too.
void IdleConnections::probe(rpc::Connection& connection, Session& session) {
  if (connection.calls_outstanding() > 0) return;
  connection.call(session.back().program, nfs4::kCallbackVersion, nfs4::kProcedureNull,
                  session.back().credential, {}, lease_, [](const Result<rpc::Reply>&) {});
}

}  // namespace pnfsrdma::mds
