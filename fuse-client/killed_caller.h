// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <string_view>

#include "shared/base/clock.h"
#include "shared/initiator/cancellation.h"

namespace pnfsrdma::fuse_client {

// Notices that the process behind a request is being killed: as on any hard NFS mount (nfs(5), "intr"), only
// that ends a wait for a silent server; other signals wait, so that no program meets an EINTR it has never
// seen of a file.
//
// FUSE's own INTERRUPT cannot tell this: it comes for any signal, only once, not at all for the flush that
// closes the files of a dying process, and needs a free worker to be read. So the waiting worker looks into
// /proc itself: two files, 200 ms after it began to wait and then twice a second; a request that is answered
// in time costs one reading of the clock.
class KilledCaller final : public initiator::Cancellation {
 public:
  // `thread`: as FUSE tells it; 0 (the kernel itself, another PID namespace) is never gone.
  explicit KilledCaller(pid_t thread) : thread_(thread) {}
  bool requested() override;

 private:
  static constexpr Milliseconds kFirstLook{200};
  static constexpr Milliseconds kDistance{500};

  const pid_t thread_;
  SteadyTime next_look_{};
  bool gone_ = false;
};

// The kernel itself, and a thread that is not there any more (a read-ahead outlives its reader), are not.
bool is_killed(pid_t thread);
// /proc/<tid>/status: a fatal signal is waiting (the kernel marks every thread of the group with SIGKILL).
bool has_fatal_signal(std::string_view status);
// /proc/<tid>/stat: it is on its way out because of a signal, and closes its files now.
bool dies_of_signal(std::string_view stat);

}  // namespace pnfsrdma::fuse_client
