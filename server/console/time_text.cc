// SPDX-License-Identifier: Apache-2.0
#include "server/console/time_text.h"

#include <fmt/format.h>

#include <ctime>

namespace pnfsrdma::console {

std::string rfc3339(const WallTime& time) {
  const time_t seconds = time.seconds;
  tm parts{};
  gmtime_r(&seconds, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", parts.tm_year + 1900, parts.tm_mon + 1,
                     parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec, time.nanoseconds / 1'000'000);
}

}  // namespace pnfsrdma::console
