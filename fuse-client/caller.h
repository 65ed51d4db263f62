// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "shared/base/clock.h"
#include "shared/base/sync.h"
#include "shared/initiator/credential.h"

namespace pnfsrdma::fuse_client {

// The supplementary groups of the processes that use the mount. FUSE tells uid, gid and pid of a caller, not
// its groups: they are in /proc/<pid>/status. Asking costs three system calls, so the answer is kept for a
// moment, as the kernel's own NFS client keeps access decisions. Thread-safe.
class CallerGroups {
 public:
  explicit CallerGroups(const Clock& clock) : clock_(clock) {}

  // What AUTH_SYS says for this caller. A process that is gone (or pid 0: the kernel itself) has its gid
  // only.
  initiator::Credential credential(uid_t user, gid_t group, pid_t process);

  // Long enough to spare the system calls in a burst, short enough that setgroups() is seen soon.
  static constexpr Milliseconds kKept = std::chrono::seconds(1);
  static constexpr size_t kEntriesMax = 256;

 private:
  struct Entry {
    uid_t user;
    gid_t group;
    SteadyTime read_at;
    std::vector<uint32_t> groups;
  };

  const Clock& clock_;
  Mutex mutex_;
  std::unordered_map<pid_t, Entry> entries_;
};

// The numbers of the line "Groups:" in the text of /proc/<pid>/status, at most kCredentialGroupsMax.
std::vector<uint32_t> parse_groups(std::string_view status);

}  // namespace pnfsrdma::fuse_client
