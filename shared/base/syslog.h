// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace pnfsrdma {

// From now on the log (shared/base/log.h) goes to syslog instead of stderr, as facility LOG_DAEMON under this
// name: for a process that leaves its terminal. `ident` lives as long as the process. Before other threads
// are started.
void log_to_syslog(const char* ident);

}  // namespace pnfsrdma
