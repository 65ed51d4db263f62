// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "server/mds/meta/key_value.h"
#include "shared/base/clock.h"
#include "shared/base/random.h"
#include "shared/base/result.h"
#include "shared/xdr/types.h"

namespace pnfsrdma::mds {

// Who this server is, and which start of it this is. Durable before open_boot() returns.
struct BootRecord {
  uint64_t boot_count =
      0;  // starts of this store so far, 1 at the first; high bits of change values, generation of inodes
  uint64_t epoch = 0;               // for claim() on the bricks: greater at every start
  xdr::FixedOpaque<16> instance{};  // random, made when the store was: server owner, scope, file system id
  bool same_host_boot = false;  // the host has not rebooted since the last start: state records may be kept
  bool clean_shutdown = false;  // the last run ended with close_boot()
  // The longest that a client of before may go without a word (RFC 8881, 8.4.2): it reclaims as late as that.
  // 0: not known.
  Milliseconds lease_before{};
  uint64_t era = 0;  // another one: metadata that was committed and not synced may be lost
};

// Counts this start. `host_boot_id`: see read_host_boot_id(). `lease`: what clients are told from now on.
// Blocks until synced.
Result<BootRecord> open_boot(KeyValueStore& store, Random& random, const std::string& host_boot_id,
                             Milliseconds lease = {});
// The grace period is over: no client goes by an earlier start's lease any more. Does not block.
Result<> forget_earlier_leases(KeyValueStore& store, Milliseconds lease);
// Notes that the daemon ends in order, everything synced before.
Result<> close_boot(KeyValueStore& store);

// The kernel's name for the time since it booted, and what note_failed_sync() has left in `directory`: as
// long as this stays the same, no commit has been lost that the store had taken.
Result<std::string> read_host_boot_id(const std::string& directory);
// A sync of the store in `directory` failed. What the kernel then forgets is as lost as by a reboot, so the
// next start takes it for one. The mark itself has to survive no more than the process.
void note_failed_sync(const std::string& directory, Random& random);

}  // namespace pnfsrdma::mds
