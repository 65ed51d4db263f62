// SPDX-License-Identifier: Apache-2.0
#include "server/mds/ops/data_operations.h"
#include "server/mds/ops/handlers.h"
#include "server/mds/ops/principal.h"
#include "server/mds/state/client_table.h"
#include "server/mds/state/lease_keeper.h"
#include "server/mds/state/server_limits.h"
#include "shared/nfs4/rename_wish.h"
#include "shared/rpc/memory_budget.h"
#include "shared/version/version.h"

// EXCHANGE_ID (RFC 8881, 18.35).
namespace pnfsrdma::mds {

using nfs4::Status;

namespace {

Outcome<> check_arguments(const CompoundContext& context, const nfs4::ExchangeIdArguments& arguments) {
  uint32_t known = nfs4::kExchangeArgumentsMask;
  if (context.minor_version < 2) known &= ~nfs4::kExchangeSupportsFenceOperations;
  if ((arguments.flags & ~known) != 0) return std::unexpected(Status::kInval);
  if (arguments.owner.owner.empty()) return std::unexpected(Status::kInval);
  switch (arguments.state_protect.discriminant()) {
    case nfs4::StateProtect::kNone:
      return {};
    case nfs4::StateProtect::kMachineCredential:
      // 18.35.3: needs RPCSEC_GSS with integrity, which nobody can have used here.
      return std::unexpected(Status::kInval);
    case nfs4::StateProtect::kSsv:
      return std::unexpected(Status::kEncrAlgUnsupp);
  }
  return std::unexpected(Status::kInval);
}

// 18.35.4, the update cases: a confirmed record of the same incarnation and principal.
Outcome<std::shared_ptr<Client>> update(const std::shared_ptr<Client>& confirmed,
                                        const nfs4::ExchangeIdArguments& arguments,
                                        const Principal& principal) {
  if (!confirmed) return std::unexpected(Status::kNoEnt);
  if (confirmed->verifier != arguments.owner.verifier) return std::unexpected(Status::kNotSame);
  if (!principal.may_act_for(confirmed->principal)) return std::unexpected(Status::kPerm);
  return confirmed;
}

bool has_state(const Services& services, const Client& client) {
  return !client.sessions.empty() || !services.opens.opens_of_client(client.id).empty();
}

// 18.35.4, the other cases: the record to answer with, an old or a new one.
Outcome<std::shared_ptr<Client>> establish(CompoundContext& context, std::shared_ptr<Client> confirmed,
                                           const nfs4::ExchangeIdArguments& arguments,
                                           const Principal& principal) {
  ClientTable& clients = context.services.clients;
  if (confirmed && !principal.may_act_for(confirmed->principal)) {
    // Case 3, a collision: another principal may take over what holds no state any more.
    if (has_state(context.services, *confirmed)) return std::unexpected(Status::kClidInuse);
    context.services.leases.retire(std::exchange(confirmed, nullptr), [] {});
  }
  // Case 2, the client asks again: the same record.
  if (confirmed && confirmed->verifier == arguments.owner.verifier) {
    clients.renew(*confirmed);
    return confirmed;
  }
  // Case 4: what was never confirmed is replaced. Case 5, the client rebooted: its old record stays until the
  // new one is confirmed (CREATE_SESSION).
  if (const auto unconfirmed = clients.find_unconfirmed(arguments.owner.owner)) {
    // A CREATE_SESSION of it waits: the client has to ask again when that is done.
    if (unconfirmed->creating_session) return std::unexpected(Status::kDelay);
    clients.remove(*unconfirmed);
  }
  if (clients.unconfirmed() >= context.services.limits.unconfirmed_clients_max) {
    const auto oldest = clients.oldest_unconfirmed();
    if (!oldest) return std::unexpected(Status::kDelay);
    clients.remove(*oldest);
  }
  return clients.add(arguments.owner.owner, arguments.owner.verifier, principal,
                     rpc::address_of_peer(context.peer));
}

nfs4::Implementation implementation(const Services& services) {
  nfs4::Implementation self;
  self.domain = "pnfsrdma";
  self.name = std::string("pnfsrdma-mdsd/") + version() + " durability=" + services.data.durability();
  self.name += nfs4::kRenameWords;
  return self;
}

// Our client ends the name of its implementation with where it is mounted.
std::string mount_point_told(std::string_view implementation) {
  constexpr std::string_view kKey = " mount=";
  const size_t at = implementation.find(kKey);
  if (!implementation.starts_with("pnfsrdma-fuse") || at == std::string_view::npos) return {};
  return std::string(implementation.substr(at + kKey.size()));
}

}  // namespace

nfs4::ExchangeIdResponse handle(CompoundContext& context, const nfs4::ExchangeIdArguments& arguments) {
  TRY(check_arguments(context, arguments));
  const Principal principal = principal_of(context);
  const auto confirmed = context.services.clients.find_confirmed(arguments.owner.owner);
  std::shared_ptr<Client> client;
  if ((arguments.flags & nfs4::kExchangeUpdateConfirmed) != 0) {
    TRY_ASSIGN(client, update(confirmed, arguments, principal));
  } else {
    TRY_ASSIGN(client, establish(context, confirmed, arguments, principal));
  }
  if (arguments.implementation) client->mount_point = mount_point_told(arguments.implementation->name);
  const ByteSpan instance = context.services.identity.instance;
  nfs4::ExchangeIdResult result;
  result.client_id = client->id;
  // For a confirmed client the RFC leaves the value open; this is what its next CREATE_SESSION has to carry.
  result.sequence_id = client->create_sequence + 1;
  result.flags = nfs4::kExchangeUsePnfsMds | (client->confirmed ? nfs4::kExchangeConfirmed : 0);
  result.server_owner.major_id = nfs4::OwnerId(instance);
  result.server_scope = nfs4::OwnerId(instance);
  result.implementation = implementation(context.services);
  return result;
}

}  // namespace pnfsrdma::mds
