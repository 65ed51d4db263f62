// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace pnfsrdma {

// "0.1.0", or with the commit: packaging/version.sh has the forms.
const char* version();

// What --version of `program` prints: its version, and below it what it was built with ("rdma-core 56.0,
// native flush: yes, atomic write: yes, …"; sanitizers where there are any).
std::string version_text(const std::string& program);

}  // namespace pnfsrdma
