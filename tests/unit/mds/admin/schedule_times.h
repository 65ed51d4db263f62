// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdio>
#include <string>

#include "server/mds/admin/snapshot_schedule.h"

namespace pnfsrdma::mds::testing {

// "2026-11-28T10:00", UTC.
inline WallTime at(const std::string& text) {
  int year = 0;
  unsigned month = 0;
  unsigned day = 0;
  int hour = 0;
  int minute = 0;
  std::sscanf(text.c_str(), "%d-%u-%uT%d:%d", &year, &month, &day, &hour, &minute);
  const std::chrono::sys_days date =
      std::chrono::year(year) / std::chrono::month(month) / std::chrono::day(day);
  const std::chrono::seconds time =
      date.time_since_epoch() + std::chrono::hours(hour) + std::chrono::minutes(minute);
  return {.seconds = time.count(), .nanoseconds = 0};
}

inline Snapshot snapshot_of(SnapshotNumber number, SnapshotClass schedule, const std::string& created) {
  return {.number = number,
          .name = std::to_string(number),
          .created = at(created),
          .state = SnapshotState::kReady,
          .schedule = schedule};
}

}  // namespace pnfsrdma::mds::testing
