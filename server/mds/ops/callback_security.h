// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "shared/nfs4/session_operations.h"
#include "shared/rpc/message.h"

namespace pnfsrdma::mds {

// The RPC credential for calls to the client, from what it offers (csa_sec_parms, bca_sec_parms): the first
// AUTH_SYS, else AUTH_NONE. RPCSEC_GSS is not spoken.
inline rpc::OpaqueAuth callback_credential(
    const xdr::List<nfs4::CallbackSecurity, nfs4::kSmallListMax>& offered) {
  for (const nfs4::CallbackSecurity& each : offered) {
    const auto* system = each.get_if<nfs4::kFlavorSys>();
    if (!system) continue;
    return rpc::to_opaque({system->stamp, system->machine_name, system->uid, system->gid, system->gids});
  }
  return {};
}

}  // namespace pnfsrdma::mds
