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
  nfs4::LayoutBody body;
  nfs4::LayoutEnd end;
  xdr::Decoder decoder(layout.content.body);
  bool whole = xdr::decode(decoder, body) && (decoder.remaining() == 0 || xdr::decode(decoder, end));
  whole = whole && decoder.remaining() == 0;
  if (whole) return body;
  log_warning("initiator", "layout-malformed bytes={}", layout.content.body.size());
  return std::nullopt;
}

uint64_t end_token(const nfs4::Layout& layout) {
  if (layout.content.layout_type != nfs4::kLayoutTypePmem) return 0;
  nfs4::LayoutBody body;
  nfs4::LayoutEnd end;
  xdr::Decoder decoder(layout.content.body);
  return xdr::decode(decoder, body) && decoder.remaining() > 0 && xdr::decode(decoder, end) ? end.token : 0;
}

}  // namespace pnfsrdma::initiator
