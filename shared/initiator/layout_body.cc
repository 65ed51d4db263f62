// SPDX-License-Identifier: Apache-2.0
#include "shared/initiator/layout_body.h"

#include "shared/base/log.h"
#include "shared/xdr/codec.h"

namespace pnfsrdma::initiator {

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
