// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <expected>
#include <functional>

#include "server/mds/grants/held_layout.h"
#include "shared/nfs4/pmem_layout.h"
#include "shared/nfs4/pnfs_operations.h"

namespace pnfsrdma::mds {

// What a client is told about what it holds.
struct LayoutAnswer {
  xdr::List<nfs4::Layout, nfs4::kSmallListMax> layouts;
  uint64_t end = 0;           // the byte behind the last one told
  bool out_of_bytes = false;  // stopped by max_bytes
};

// The deviceid of the brick with this logical address.
using DeviceOf = std::function<nfs4::DeviceId(uint64_t logical)>;

// The segments of exactly this mode from `range.begin` on, without gap, to `range.end` at most (whole grants,
// so possibly beyond), in at most `max_bytes` of LayoutGetResult. A new layout4 begins where the
// connection of the handles changes: the body names one. Pure function.
LayoutAnswer describe_layout(const HeldLayout& layout, const DeviceOf& device_of, const ByteRange& range,
                             IoMode mode, uint32_t max_bytes);

}  // namespace pnfsrdma::mds
