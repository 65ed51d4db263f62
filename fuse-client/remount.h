// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "shared/base/result.h"

namespace pnfsrdma::fuse_client {

// "remount" among the options of the command line: mount(8) wants a mount that is there to be changed.
bool is_remount(const std::vector<std::string>& options);

// What mount -o remount does, all of it: the flags of mount(8) that `options` name (ro, rw, nosuid, ...) are
// set, the others stay as they are. The mount's own options (hard, timeo=, ...) belong to the program that
// serves it.
struct Remount {
  unsigned long flags = 0;           // of mount(2), MS_REMOUNT with them
  std::vector<std::string> ignored;  // options that only a new mount can change
};
// `now`: the options of /proc/mounts. EINVAL: an option is unknown.
Result<Remount> plan_remount(std::string_view now, const std::vector<std::string>& options);

// ENOENT: nothing of ours is mounted there; EBUSY: a file is open for writing; EPERM.
Result<Remount> remount(const std::string& mountpoint, const std::vector<std::string>& options);

}  // namespace pnfsrdma::fuse_client
