// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
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

// What clients report that they read and wrote in the memory of the bricks (LAYOUTSTATS), past the server: of one
// layout, one client or all, since the start. A hint: nobody else counts what an RDMA device moves.
struct ReportedIo {
  uint64_t reads = 0;
  uint64_t read_bytes = 0;
  uint64_t writes = 0;
  uint64_t write_bytes = 0;

  // As far as numbers go: a client may report anything.
  ReportedIo& operator+=(const ReportedIo& more) {
    for (uint64_t ReportedIo::* one :
         {&ReportedIo::reads, &ReportedIo::read_bytes, &ReportedIo::writes, &ReportedIo::write_bytes})
      this->*one += std::min(more.*one, UINT64_MAX - this->*one);
    return *this;
  }
  bool operator==(const ReportedIo&) const = default;
};

}  // namespace pnfsrdma::mds
