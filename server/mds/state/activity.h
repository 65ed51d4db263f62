// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace pnfsrdma::mds {

// NFS operations, and bytes that went through the server: of one client, one export or one file, since the
// start. What goes straight to the memory of the bricks is not in it.
struct Activity {
  uint64_t operations = 0;
  uint64_t read_bytes = 0;
  uint64_t write_bytes = 0;

  Activity& operator+=(const Activity& more) {
    operations += more.operations;
    read_bytes += more.read_bytes;
    write_bytes += more.write_bytes;
    return *this;
  }
  bool operator==(const Activity&) const = default;
};

}  // namespace pnfsrdma::mds
