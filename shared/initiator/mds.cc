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

LayoutGranted decode_layouts(const nfs4::LayoutGetResult& result) {
  LayoutGranted granted{.stateid = result.stateid, .return_on_close = result.return_on_close};
  for (const nfs4::Layout& layout : result.layouts) {
    if (layout.content.layout_type != nfs4::kLayoutTypePmem) continue;
    auto body = xdr::decode_from<nfs4::LayoutBody>(layout.content.body);
    if (!body) {
      log_warning("initiator", "layout-malformed error={}", xdr::to_string(body.error()));
      continue;
    }
    granted.pieces.push_back({layout.offset, layout.length, layout.io_mode, std::move(*body)});
  }
  return granted;
}

}  // namespace pnfsrdma::initiator
