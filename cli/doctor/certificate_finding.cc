// SPDX-License-Identifier: Apache-2.0
#include "cli/doctor/certificate_finding.h"

#include <fmt/format.h>

#include "cli/cluster/certificates.h"
#include "cli/cluster/member_settings.h"

namespace pnfsrdma::cli {
namespace {

constexpr int kDaysLeast = 30;

// What brings another one.
std::string renewal(const std::string& path, const std::string& named_in) {
  const MemberPaths paths;
  if (path == paths.brick_certificate())
    return "pnfsrdma cluster invite --brick ADDRESS, on a member, and cluster join with its token, here, "
           "renew it";
  if (path.starts_with(paths.directory + "/"))
    return "pnfsrdma cluster join, without a token, renews those of the members";
  return "renew it; " + named_in + " has its path";
}

}  // namespace

Finding certificate_finding(const Host& host, const std::string& path, const std::string& ended,
                            const std::string& named_in) {
  const std::string subject = "certificate " + path;
  const std::string fix = renewal(path, named_in);
  const auto text = host.read(path);
  if (!text) return {subject, Verdict::kProblem, text.error().to_string(), fix};
  const auto days = days_left(*text);
  if (!days) return {subject, Verdict::kProblem, days.error().title, fix};
  if (*days < 0) return {subject, Verdict::kProblem, "has ended: " + ended, fix};
  if (*days < kDaysLeast) return {subject, Verdict::kWarning, fmt::format("ends in {} days", *days), fix};
  return {subject, Verdict::kOk, fmt::format("good for {} days", *days), ""};
}

}  // namespace pnfsrdma::cli
