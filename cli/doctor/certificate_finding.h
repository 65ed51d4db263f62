// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cli/doctor/finding.h"
#include "cli/doctor/host.h"

namespace pnfsrdma::cli {

// How long a certificate of this host is good. `ended`: what it means when it is not. `named_in`: where an
// administrator finds its path.
Finding certificate_finding(const Host& host, const std::string& path, const std::string& ended,
                            const std::string& named_in);

}  // namespace pnfsrdma::cli
