// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "shared/base/clock.h"
#include "shared/initiator/persistence.h"

namespace pnfsrdma::initiator {

// How patient and how greedy the data path is. A value; mount options fill it in.
struct DataPathOptions {
  // The mount's. A brick that has to be asked for its verifier and is silent is waited for as the MDS is: for
  // ever (hard), or io_timeout.
  Persistence persistence = Persistence::kHard;
  // One RDMA operation; when it passes, the connection is closed and reestablished.
  Milliseconds io_timeout = std::chrono::seconds(10);
  // Connecting to a device, hello included. Afterwards the I/O goes through the MDS and the device rests.
  Milliseconds connect_timeout = std::chrono::seconds(3);
  Milliseconds connect_pause_first = std::chrono::milliseconds(100);
  Milliseconds connect_pause_max = std::chrono::seconds(5);
  // A device that is not reached is reported to the server (LAYOUTERROR) so often. 0: never.
  Milliseconds report_distance = std::chrono::seconds(30);
  // What was read and written by layouts is told to the server (LAYOUTSTATS) so often, and when one is returned.
  // 0: never.
  Milliseconds activity_distance{0};
  // After LAYOUTTRYLATER or LAYOUTUNAVAILABLE a file goes through the MDS this long.
  Milliseconds layout_pause = std::chrono::seconds(1);
  Milliseconds layout_unavailable_pause = std::chrono::seconds(30);
  // mtime-only LAYOUTCOMMITs of one file keep this distance.
  Milliseconds commit_distance = std::chrono::milliseconds(100);
  // mdsthreshold, where the server's attribute says nothing: smaller files are read and written through the
  // MDS.
  uint64_t threshold_read_size = 0;
  uint64_t threshold_write_size = 0;
  // LAYOUTGET asks for at least and at most this much.
  uint64_t layout_bytes_min = uint64_t{1} << 20;
  uint64_t layout_bytes_max = uint64_t{1} << 30;
  size_t buffers_kept = 32;
  // Recalls that are served at the same time; of files on one brick a quarter. 0: by the caller, one by one.
  size_t recall_threads = 8;
  // Files that nobody has open whose layouts are kept for the next open.
  size_t closed_files_kept = 4096;
  // Copies of growth that is not committed (KeptWrites), of all files; from half of it on growth is committed
  // without being asked.
  uint64_t kept_bytes_max = uint64_t{64} << 20;
  // Copies of what went through the MDS and is not committed (UnstableWrites), of all files; from half of it on
  // it is flushed without being asked, and beyond it each WRITE is stable at once.
  uint64_t unstable_bytes_max = uint64_t{64} << 20;
  // What was written this long ago and nobody has flushed is flushed without being asked; at the latest when
  // it is twice as old. 0: never.
  Milliseconds flush_after{0};
  // Memory that does not survive a loss of power is not written to: I/O on such a device is EIO, and so is an
  // fsync of what went through an MDS that has such a device (require_durability=persistent).
  bool require_power = false;
  bool layouts = true;  // false: everything through the MDS
};

}  // namespace pnfsrdma::initiator
