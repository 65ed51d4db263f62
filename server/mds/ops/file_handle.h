// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace pnfsrdma::mds {

// What a filehandle of this server names: an object as seen through one export. HandleKeys makes the bytes of
// it and reads them.
struct ObjectHandle {
  uint16_t export_id = 0;
  uint64_t inode = 0;
  uint64_t generation = 0;
  bool old = false;  // of version 1: its client gets more of that kind, so that each file has one name
  bool operator==(const ObjectHandle&) const = default;
};

}  // namespace pnfsrdma::mds
