// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "tests/bench/transport/measurement.h"

namespace pnfsrdma::bench {

// What is measured of the first RDMA device, and how often. The ceiling is perftest's ib_read_bw,
// ib_write_bw, ib_read_lat and ib_write_lat on the same device; who runs them in turn with one number of ours
// at a time compares what the same minute gives to both.
struct VerbsTable {
  static const std::vector<std::string>& quantities();

  std::vector<std::string> wanted = quantities();
  std::vector<size_t> sizes = {8, 4096, 65536, 1 << 20};
  int rounds = 3;  // the best of them counts
  bool json = false;

  // Prints the table. 0, or 77 when there is no device.
  int print(const Settings& settings) const;
};

}  // namespace pnfsrdma::bench
