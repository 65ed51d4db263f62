// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <expected>

#include "shared/nfs4/basic_types.h"

namespace pnfsrdma::mds {

// What a filehandle of this server names: an object as seen through one export. On the wire 20 bytes,
// big-endian: version u16, export u16, inode u64, generation u64.
struct ObjectHandle {
  uint16_t export_id = 0;
  uint64_t inode = 0;
  uint64_t generation = 0;
  bool operator==(const ObjectHandle&) const = default;
};

nfs4::FileHandle encode_handle(const ObjectHandle& handle);
// BADHANDLE for bytes this server cannot have made.
std::expected<ObjectHandle, nfs4::Status> decode_handle(const nfs4::FileHandle& handle);

}  // namespace pnfsrdma::mds
