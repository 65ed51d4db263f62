// SPDX-License-Identifier: Apache-2.0
#include "server/mds/ops/callback_security.h"
#include "server/mds/ops/handlers.h"
#include "server/mds/ops/principal.h"
#include "server/mds/state/client_table.h"
#include "server/mds/state/conflicts.h"
#include "server/mds/state/delegations.h"
#include "server/mds/state/grace.h"
#include "server/mds/state/lease_keeper.h"
#include "server/mds/state/session_table.h"
#include "server/mds/state/state_store.h"

namespace pnfsrdma::mds {

using nfs4::Status;

namespace {

bool has_busy_back_slot(Session& session) {
  for (const BackSlot& slot : session.back().slots) {
    if (slot.busy) return true;
  }
  return false;
}

}  // namespace

// RFC 8881, 18.33
nfs4::BackchannelControlResponse handle(CompoundContext& context,
                                        const nfs4::BackchannelControlArguments& arguments) {
  BackChannel& back = context.session->back();
  back.program = arguments.callback_program;
  back.credential = callback_credential(arguments.callback_security);
  return Status::kOk;
}

// RFC 8881, 18.34
nfs4::BindConnectionToSessionResponse handle(CompoundContext& context,
                                             const nfs4::BindConnectionToSessionArguments& arguments) {
  if (context.request.operations != 1) return Status::kNotOnlyOp;
  const auto session = context.services.sessions.find(arguments.session_id);
  if (!session) return Status::kBadSession;
  const bool fore = arguments.direction != nfs4::DirectionFromClient::kBack;
  const bool back = arguments.direction != nfs4::DirectionFromClient::kFore;
  bool rdma = false;
  if (const auto connection = context.connection.lock()) {
    if (fore) session->bind_fore(connection);
    if (back) session->bind_back(connection);
    rdma = connection->is_rdma();
  }
  if (back) session->back().wanted = true;
  nfs4::BindConnectionToSessionResult result;
  result.session_id = session->id();
  // With RPC-over-RDMA version 1 a connection is in RDMA mode from its start or never (RFC 8267, 5.1).
  result.use_rdma_mode = arguments.use_rdma_mode && rdma;
  result.direction = fore && back ? nfs4::DirectionFromServer::kBoth
                     : back       ? nfs4::DirectionFromServer::kBack
                                  : nfs4::DirectionFromServer::kFore;
  return result;
}

// RFC 8881, 18.37
nfs4::DestroySessionResponse handle(CompoundContext& context,
                                    const nfs4::DestroySessionArguments& arguments) {
  const auto session = context.services.sessions.find(arguments.session_id);
  if (!session) return Status::kBadSession;
  const bool own = session == context.session;
  if (own && context.request.index + 1 != context.request.operations) return Status::kNotOnlyOp;
  // Only a connection of the session may end it.
  const auto connection = context.connection.lock();
  if (connection && !own && !session->bound(*connection)) return Status::kConnNotBoundToSession;
  if (has_busy_back_slot(*session)) return Status::kBackChanBusy;
  // Other requests of the session still run: their replies need it.
  if (session->slots().busy() > (own ? 1U : 0U)) return Status::kDelay;
  context.services.sessions.destroy(*session);
  return Status::kOk;
}

// RFC 8881, 18.50
nfs4::DestroyClientIdResponse handle(CompoundContext& context,
                                     const nfs4::DestroyClientIdArguments& arguments) {
  Services& services = context.services;
  const auto client = services.clients.find(arguments.client_id);
  if (!client) return Status::kStaleClientId;
  const bool busy = !client->sessions.empty() || client->creating_session ||
                    !services.opens.opens_of_client(client->id).empty() ||
                    !services.delegations.table().of_client(client->id).empty() ||
                    services.layouts.client_holds_layouts(client->id);
  if (busy) return Status::kClientIdBusy;
  services.leases.retire(client, [] {});
  return Status::kOk;
}

// RFC 8881, 18.51
nfs4::ReclaimCompleteResponse handle(CompoundContext& context,
                                     const nfs4::ReclaimCompleteArguments& arguments) {
  // One file system only: it has moved here, which does not happen; nothing to end.
  if (arguments.one_filesystem) {
    TRY(context.current_handle());
    return Status::kOk;
  }
  Client& client = *context.client;
  if (client.reclaim_complete) return Status::kCompleteAlready;
  client.reclaim_complete = true;
  if (const auto stored = context.services.state_store.put(client); !stored) {
    client.reclaim_complete = false;
    return stored.error();
  }
  context.services.grace.reclaimed(client.owner);
  return Status::kOk;
}

}  // namespace pnfsrdma::mds
