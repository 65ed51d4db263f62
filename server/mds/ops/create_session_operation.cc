// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "server/mds/ops/callback_security.h"
#include "server/mds/ops/handlers.h"
#include "server/mds/ops/principal.h"
#include "server/mds/state/client_table.h"
#include "server/mds/state/lease_keeper.h"
#include "server/mds/state/server_limits.h"
#include "server/mds/state/session_table.h"
#include "server/mds/state/state_store.h"
#include "shared/rpc/memory_budget.h"

// CREATE_SESSION (RFC 8881, 18.36): the client ID's own reply cache of one slot, confirmation, then the
// session.
namespace pnfsrdma::mds {

using nfs4::Status;

namespace {

// How long a rebooted client waits for its earlier self to be fenced before it is told to come back: a brick
// may be away for long.
constexpr Milliseconds kFencingPatience{2000};

// 18.36.3: each value is at most what the client asked for and what this server takes on.
Outcome<nfs4::ChannelAttributes> negotiate_fore(const nfs4::ChannelAttributes& asked,
                                                const ServerLimits& limits) {
  if (asked.max_request_size < kRequestBytesMin || asked.max_response_size < kReplyBytesMin) {
    return std::unexpected(Status::kTooSmall);
  }
  // No operation but SEQUENCE, or no slot: such a session is of no use to anybody.
  if (asked.max_operations == 0 || asked.max_requests == 0) return std::unexpected(Status::kInval);
  nfs4::ChannelAttributes granted;
  granted.max_request_size = std::min(asked.max_request_size, limits.request_bytes_max);
  granted.max_response_size = std::min(asked.max_response_size, limits.reply_bytes_max);
  granted.max_response_size_cached = std::min(asked.max_response_size_cached, limits.cached_reply_bytes_max);
  granted.max_operations = std::min(asked.max_operations, limits.operations_max);
  granted.max_requests = std::min(asked.max_requests, limits.session_slots_max);
  return granted;
}

Outcome<nfs4::ChannelAttributes> negotiate_back(const nfs4::ChannelAttributes& asked,
                                                const ServerLimits& limits) {
  if (asked.max_request_size < kCallbackBytesMin || asked.max_response_size < kCallbackBytesMin) {
    return std::unexpected(Status::kTooSmall);
  }
  // CB_SEQUENCE and the one operation that is the point of the call.
  if (asked.max_operations < 2 || asked.max_requests == 0) return std::unexpected(Status::kTooSmall);
  nfs4::ChannelAttributes granted = asked;
  granted.header_pad_size = 0;
  granted.max_response_size_cached = 0;
  granted.max_operations = 2;
  granted.max_requests = std::min(asked.max_requests, limits.back_slots_max);
  granted.rdma_ird.reset();
  return granted;
}

// The replay cache: only a success is in it, an error leaves the slot as it was. Nothing: a new request.
// SEQ_MISORDERED, DELAY.
Outcome<std::optional<nfs4::CreateSessionResult>> replay(ClientTable& clients, Client& client,
                                                         uint32_t sequence) {
  if (client.creating_session) {
    clients.renew(client);  // it asks again and again: as long as it does, it is not forgotten
    return std::unexpected(Status::kDelay);
  }
  if (sequence == client.create_sequence + 1) return std::optional<nfs4::CreateSessionResult>();
  if (sequence != client.create_sequence || sequence == 0) return std::unexpected(Status::kSeqMisordered);
  // Empty when the daemon restarted between the record and the reply: nobody has the session, so it is made
  // now.
  return client.create_reply;
}

struct SessionPlan {
  nfs4::ChannelAttributes fore;
  BackChannel back;
};

Outcome<SessionPlan> plan_session(const CompoundContext& context,
                                  const nfs4::CreateSessionArguments& arguments) {
  constexpr uint32_t kKnown = nfs4::kSessionPersist | nfs4::kSessionBackChannel | nfs4::kSessionRdma;
  if ((arguments.flags & ~kKnown) != 0) return std::unexpected(Status::kInval);
  const ServerLimits& limits = context.services.limits;
  SessionPlan plan;
  TRY_ASSIGN(plan.fore, negotiate_fore(arguments.fore_channel, limits));
  TRY_ASSIGN(plan.back.attributes, negotiate_back(arguments.back_channel, limits));
  plan.back.wanted = (arguments.flags & nfs4::kSessionBackChannel) != 0;
  plan.back.minor_version = context.minor_version;
  plan.back.program = arguments.callback_program;
  plan.back.credential = callback_credential(arguments.callback_security);
  plan.back.slots.resize(plan.back.attributes.max_requests);
  return plan;
}

// Another client. One that has been here before, or replaces itself, takes no place from anybody.
Outcome<> check_place(const Services& services, const std::string& address) {
  ClientTable& clients = services.clients;
  const bool full = clients.confirmed() >= services.limits.clients_max;
  const size_t of_address = clients.confirmed_of(address);
  if (!full && of_address < services.limits.clients_per_address_max) return {};
  clients.note_refused(address);
  return std::unexpected(Status::kDelay);
}

// Confirms the client ID. The client's earlier incarnation loses its state first: fenced, then forgotten
// (18.36.4).
Outcome<> confirm(CompoundContext& context, const std::shared_ptr<Client>& client) {
  Services& services = context.services;
  if (client->confirmed) return {};
  const auto old = services.clients.find_confirmed(client->owner);
  if (!old) TRY(check_place(services, client->address));
  if (old) {
    TRY(context.suspension.ask<bool>([&](auto done) {
      client->creating_session = true;
      // Told that it takes too long, the operation runs again and finds the mark: DELAY, and so does each try
      // until the mark is gone.
      services.leases.retire_within(
          old, kFencingPatience,
          [client, done] {
            client->creating_session = false;
            done(true);
          },
          [done] { done(false); });
    }));
  }
  services.clients.confirm(*client);
  return {};
}

}  // namespace

nfs4::CreateSessionResponse handle(CompoundContext& context, const nfs4::CreateSessionArguments& arguments) {
  Services& services = context.services;
  const auto client = services.clients.find(arguments.client_id);
  if (!client) return Status::kStaleClientId;
  TRY_ASSIGN(const auto replayed, replay(services.clients, *client, arguments.sequence_id));
  if (replayed) return *replayed;
  if (!principal_of(context).may_act_for(client->principal)) return Status::kClidInuse;
  TRY_ASSIGN(SessionPlan plan, plan_session(context, arguments));
  if (client->sessions.size() >= services.limits.sessions_per_client_max) return Status::kDelay;

  TRY(confirm(context, client));
  // Behind the wait, and what was reserved before it might be gone again: fewer slots, or none now.
  plan.fore.max_requests =
      services.sessions.affordable_slots(plan.fore.max_requests, plan.fore.max_response_size_cached);
  if (plan.fore.max_requests == 0) return Status::kDelay;
  client->create_sequence = arguments.sequence_id;
  client->create_reply.reset();
  TRY(services.state_store.put(*client));
  const auto session = services.sessions.create(client, plan.fore, std::move(plan.back));
  services.clients.move_to(*client, rpc::address_of_peer(context.peer));
  const auto connection = context.connection.lock();
  nfs4::CreateSessionResult result;
  if (connection) session->bind_fore(connection);
  if (connection && session->back().wanted) {
    session->bind_back(connection);
    result.flags |= nfs4::kSessionBackChannel;
  }
  services.clients.renew(*client);
  result.session_id = session->id();
  result.sequence_id = arguments.sequence_id;
  result.fore_channel = session->fore();
  result.back_channel = session->back().attributes;
  client->create_reply = result;
  return result;
}

}  // namespace pnfsrdma::mds
