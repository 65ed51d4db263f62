// SPDX-License-Identifier: Apache-2.0
#include "cli/clone/clone_memory.h"

#include <fcntl.h>
#include <sys/ioctl.h>

#include <cerrno>

#include "shared/ring/control.h"

namespace pnfsrdma::cli {

std::optional<CloneRefusal> clone_memory(int source, int target) {
  // What the kernel keeps of shared mappings.
  (void)sync_file_range(source, 0, 0,
                        SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER);
  ring::OfferClone offer;
  if (ioctl(source, ring::kOfferClone, &offer) != 0) return CloneRefusal{errno, true};
  ring::Clone clone{.secret = offer.secret};
  if (ioctl(target, ring::kClone, &clone) != 0) return CloneRefusal{errno, false};
  return std::nullopt;
}

}  // namespace pnfsrdma::cli
