// SPDX-License-Identifier: Apache-2.0
#include "shared/initiator/metadata_channel.h"

#include "shared/nfs4/status_errno.h"

namespace pnfsrdma::initiator {

int MetadataError::to_errno() const {
  return status == nfs4::Status::kOk ? number : nfs4::to_errno(status);
}

}  // namespace pnfsrdma::initiator
