// SPDX-License-Identifier: Apache-2.0
#include "cli/doctor/checks.h"
#include "cli/output/units.h"

namespace pnfsrdma::cli {

Findings check_clock(const Host& host) {
  const ClockState clock = host.clock();
  if (clock.synchronised) {
    return {{"clock", Verdict::kOk, "synchronised, at most " + latency_text(clock.error_max) + " off", ""}};
  }
  // Times of files are the server's and the clients' own: make(1), rsync(1) and backups compare them.
  return {{"clock", Verdict::kWarning, "not synchronised: times of files may differ from the server's",
           "apt-get install chrony   (or timedatectl set-ntp true)"}};
}

}  // namespace pnfsrdma::cli
