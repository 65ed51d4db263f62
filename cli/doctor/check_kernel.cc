// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cstdio>
#include <tuple>

#include "cli/doctor/checks.h"

namespace pnfsrdma::cli {
namespace {

struct Version {
  int major = 0;
  int minor = 0;
  auto operator<=>(const Version&) const = default;
};

// FUSE with everything the mount asks of it; the oldest we test is Debian 12's 6.1.
constexpr Version kOldest{5, 10};
// Soft-RoCE (rdma_rxe) executes RDMA FLUSH and ATOMIC WRITE.
constexpr Version kSoftRoceFlush{6, 2};

Version version_of(const std::string& release) {
  Version version;
  if (std::sscanf(release.c_str(), "%d.%d", &version.major, &version.minor) != 2) return {};
  return version;
}

}  // namespace

Findings check_kernel(const Host& host) {
  const std::string release = host.kernel_release();
  const Version version = version_of(release);
  Finding finding{"kernel", Verdict::kOk, "Linux " + release, ""};
  if (version < kOldest) {
    finding.verdict = Verdict::kWarning;
    finding.what += fmt::format("; older than {}.{}, which was never tested", kOldest.major, kOldest.minor);
    finding.fix = "use a newer kernel";
  } else if (version < kSoftRoceFlush) {
    finding.what +=
        "; Soft-RoCE has no RDMA FLUSH before 6.2 (the commit message is used: one round trip as well)";
  }
  return {finding};
}

}  // namespace pnfsrdma::cli
