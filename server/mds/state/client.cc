// SPDX-License-Identifier: Apache-2.0
#include "server/mds/state/client.h"

#include "shared/nfs4/session_operations.h"

namespace pnfsrdma::mds {

uint32_t Client::sequence_flags() const {
  uint32_t flags = status_flags;
  for (const RevokedState& state : revoked) {
    flags |= state.status == nfs4::Status::kExpired ? nfs4::kSequenceExpiredSomeStateRevoked
                                                    : nfs4::kSequenceAdminStateRevoked;
  }
  return flags;
}

}  // namespace pnfsrdma::mds
