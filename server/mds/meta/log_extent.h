// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "shared/base/result.h"

namespace rocksdb {
struct Options;
}

namespace pnfsrdma::mds {

class SyncMark;

// How far recovery would bring a store, and how far it must.
struct LogExtent {
  uint64_t recovered = 0;  // sequence of the last write that opening the store would keep
  uint64_t synced = 0;     // the highest mark found
  std::string file;        // the log in which reading ended: "A to B" if it may have been one behind A

  bool loses_synced() const { return recovered < synced; }
};

// Reads the store without changing it. Before opening it for writing, which drops what a damaged log cannot
// give. A running daemon may have it open. Takes the time of reading the logs once (256 MiB at most); twice,
// with their writes put together in memory, where something looks lost.
Result<LogExtent> measure_log(const rocksdb::Options& options, const std::string& path, const SyncMark& mark);

}  // namespace pnfsrdma::mds
