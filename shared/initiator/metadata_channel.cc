// SPDX-License-Identifier: Apache-2.0
#include "shared/initiator/metadata_channel.h"

#include "shared/nfs4/status_errno.h"

namespace pnfsrdma::initiator {

int MetadataError::to_errno() const {
  return status == nfs4::Status::kOk ? number : nfs4::to_errno(status);
}

bool is_lost_state(nfs4::Status status) {
  switch (status) {
    case nfs4::Status::kBadStateid:
    case nfs4::Status::kOldStateid:
    case nfs4::Status::kStaleStateid:
    case nfs4::Status::kExpired:
    case nfs4::Status::kAdminRevoked:
      return true;
    default:
      return false;
  }
}

}  // namespace pnfsrdma::initiator
