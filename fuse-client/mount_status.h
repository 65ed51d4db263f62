// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "fuse-client/close_queue.h"
#include "fuse-client/delegations.h"
#include "fuse-client/inode_table.h"
#include "fuse-client/mount_options.h"
#include "shared/base/clock.h"
#include "shared/initiator/data_path.h"
#include "shared/initiator/session/session.h"

namespace pnfsrdma::fuse_client {

// Requests that wait for a device which is silent, and hold no worker: so many at most, and so many bytes of
// theirs (of a WRITE all it writes).
inline constexpr size_t kParkedRequestsMax = 16384;
inline constexpr size_t kParkedBytesMax = size_t{128} << 20;

class RingServer;

// How many FUSE requests are being served: kept by the WorkerPool, read by anybody.
struct WorkerCounts {
  std::atomic<uint32_t> running = 0;
  std::atomic<uint32_t> idle = 0;
  std::atomic<size_t> parked = 0;
  std::atomic<size_t> parked_bytes = 0;
};

// What a mount tells of itself: to getfattr, to `pnfsrdma stat`, to Prometheus. Built by run_mount() of parts
// that outlive it. Thread-safe; asks no server; looks at everything, so it is for people and scrapers.
class MountStatus {
 public:
  struct Parts {
    initiator::Session& session;
    initiator::DataPath& data_path;
    const InodeTable& inodes;
    const Delegations& delegations;
    const CloseQueue& closes;
    RingServer& rings;
    const WorkerCounts& workers;
    const MountOptions& options;
    const Clock& clock;
    std::vector<std::string> transports;  // of this mount, best first
    std::string durability;               // as the server told
  };

  explicit MountStatus(Parts parts) : parts_(std::move(parts)), mounted_at_(parts_.clock.now()) {}

  // Of the devices in use: "verbs", "iwarp,verbs", "none".
  std::string transport() const;
  std::string durability() const;
  // One flat JSON object of counters, mds_operations by name within.
  std::string statistics_json() const;
  // What is in use and why: a JSON object, see README.md.
  std::string status_json() const;
  // Prometheus text, version 0.0.4 (mount_metrics.cc).
  std::string metrics_text() const;

 private:
  const Parts parts_;
  const SteadyTime mounted_at_;
};

}  // namespace pnfsrdma::fuse_client
