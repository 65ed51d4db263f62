// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "shared/initiator/mds.h"
#include "shared/nfs4/pmem_layout.h"

namespace pnfsrdma::initiator {

class Device;

// Where a byte range ends; a range that reaches to the end of everything stays there.
constexpr uint64_t range_end(uint64_t offset, uint64_t length) {
  return length > UINT64_MAX - offset ? UINT64_MAX : offset + length;
}
constexpr bool overlap(uint64_t offset, uint64_t length, uint64_t other_offset, uint64_t other_length) {
  return offset < range_end(other_offset, other_length) && other_offset < range_end(offset, length);
}

// A segment of a layout we hold: a value. Its device lives as long as the mount.
struct LayoutSegment {
  uint64_t offset = 0;
  uint64_t length = 0;
  nfs4::IoMode iomode = nfs4::IoMode::kRead;
  Device* device = nullptr;  // none: a hole
  uint32_t incarnation = 0;  // of the device, when it was granted; of a hole: HoleTrust::era()
  uint32_t generation = 0;   // LayoutBody::connection
  nfs4::Target read;
  nfs4::Target write;
  // A segment begins where its grant begins; a part of one this far behind.
  uint64_t skip = 0;

  uint64_t end() const { return offset + length; }
  bool hole() const { return read.grant == 0 && write.grant == 0; }
  bool writable() const { return write.grant != 0; }
  // The part of it from `from` to `to`, both inside.
  LayoutSegment part(uint64_t from, uint64_t to) const {
    LayoutSegment cut = *this;
    cut.offset = from;
    cut.length = to - from;
    cut.skip += from - offset;
    return cut;
  }
};

}  // namespace pnfsrdma::initiator
