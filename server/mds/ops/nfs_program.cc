// SPDX-License-Identifier: Apache-2.0
#include "server/mds/ops/nfs_program.h"

#include "shared/nfs4/data_items.h"
#include "shared/nfs4/limits.h"

namespace pnfsrdma::mds {

namespace {

// The caller of an accepted flavour. AUTH_NONE is nobody in particular: the export says who that is.
std::optional<Credentials> credentials_of(const rpc::OpaqueAuth& credential) {
  if (credential.flavor == rpc::AuthFlavor::kNone) return Credentials{};
  const auto system = rpc::to_auth_sys(credential);
  if (!system) return std::nullopt;
  return Credentials{.uid = system->uid, .gid = system->gid, .groups = system->gids};
}

void compound(Compounds& compounds, const rpc::ConnectionPointer& connection, rpc::IncomingCall call,
              rpc::Responder responder) {
  auto caller = credentials_of(call.header.credential);
  if (!caller) {
    const bool known = call.header.credential.flavor == rpc::AuthFlavor::kSys;
    return responder.refuse_auth(known ? rpc::AuthStatus::kBadCredential : rpc::AuthStatus::kTooWeak);
  }
  CompoundCall made;
  made.flavor = static_cast<uint32_t>(call.header.credential.flavor);
  made.caller = *std::move(caller);
  made.peer = connection->peer();
  made.rdma = connection->is_rdma();
  made.connection = connection;
  made.memory = connection->memory();
  made.arguments = call.arguments;
  made.record = std::move(call.record);  // `arguments` stays valid: it points to the heap
  compounds.start(std::move(made), [responder = std::move(responder)](CompoundReply reply) mutable {
    if (reply) return responder.reply(*std::move(reply));
    if (const auto* denied = std::get_if<rpc::AuthStatus>(&reply.error()))
      return responder.refuse_auth(*denied);
    responder.refuse(std::get<rpc::AcceptStatus>(reply.error()));
  });
}

void handle_call(Compounds& compounds, const rpc::ConnectionPointer& connection, rpc::IncomingCall call,
                 rpc::Responder responder) {
  if (call.header.program != nfs4::kProgram) return responder.refuse(rpc::AcceptStatus::kProgramUnavailable);
  // Versions 2 and 3 are other protocols (RFC 1813), refused as RFC 5531 says.
  if (call.header.version != nfs4::kVersion)
    return responder.refuse_version({nfs4::kVersion, nfs4::kVersion});
  switch (call.header.procedure) {
    case nfs4::kProcedureNull:
      // RFC 9289, 4.1: without TLS here, a probe for it is refused.
      if (call.header.credential.flavor == rpc::AuthFlavor::kTls) {
        return responder.refuse_auth(rpc::AuthStatus::kRejectedCredential);
      }
      return responder.reply(Bytes());
    case nfs4::kProcedureCompound:
      return compound(compounds, connection, std::move(call), std::move(responder));
    default:
      return responder.refuse(rpc::AcceptStatus::kProcedureUnavailable);
  }
}

}  // namespace

rpc::Service nfs_service(Compounds& compounds, IdleConnections& connections, rpc::MemoryBudget* memory) {
  rpc::Service service;
  service.memory = memory;
  service.on_accept = [&connections](const rpc::ConnectionPointer& connection) {
    connections.watch(connection);
  };
  service.on_call = [&compounds](const rpc::ConnectionPointer& connection, rpc::IncomingCall call,
                                 rpc::Responder responder) {
    handle_call(compounds, connection, std::move(call), std::move(responder));
  };
  return service;
}

rpc_rdma::UpperLayer nfs_upper_layer() {
  return {.argument_items = nfs4::argument_data_items,
          .result_items = nfs4::result_data_items,
          .result_bound = nfs4::result_bound,
          .restored_items = nfs4::restored_data_items};
}

}  // namespace pnfsrdma::mds
