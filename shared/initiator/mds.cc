// SPDX-License-Identifier: Apache-2.0
#include "shared/initiator/mds.h"

#include "shared/base/log.h"
#include "shared/nfs4/status_errno.h"
#include "shared/xdr/codec.h"

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

std::optional<nfs4::LayoutBody> pmem_body(const nfs4::Layout& layout) {
  if (layout.content.layout_type != nfs4::kLayoutTypePmem) return std::nullopt;
  auto body = xdr::decode_from<nfs4::LayoutBody>(layout.content.body);
  if (body) return *std::move(body);
  log_warning("initiator", "layout-malformed error={}", xdr::to_string(body.error()));
  return std::nullopt;
}

}  // namespace pnfsrdma::initiator
