// SPDX-License-Identifier: Apache-2.0
#include "server/mds/bricks/path_reports.h"

namespace pnfsrdma::mds {

bool PathReports::note(uint64_t client, const BrickUuid& brick, nfs4::Status error, SteadyTime now) {
  if (reports_.size() >= kReportsMax) forget_void(now);
  const auto found = reports_.find({client, brick});
  if (found == reports_.end() && reports_.size() >= kReportsMax) return false;
  Report& report = found != reports_.end() ? found->second : reports_[{client, brick}];
  const bool news = found == reports_.end() || now - report.last > kValid;
  if (news) report.first = now;
  report.error = error;
  report.last = now;
  return news;
}

std::vector<PathReports::Broken> PathReports::current(SteadyTime now) const {
  std::vector<Broken> broken;
  for (const auto& [key, report] : reports_) {
    if (now - report.last <= kValid)
      broken.push_back({.client = key.first, .brick = key.second, .report = report});
  }
  return broken;
}

void PathReports::forget_void(SteadyTime now) {
  std::erase_if(reports_, [now](const auto& item) { return now - item.second.last > kValid; });
}

}  // namespace pnfsrdma::mds
