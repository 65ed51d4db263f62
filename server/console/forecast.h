// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace pnfsrdma::console {

// Used space at one time, seconds since the epoch.
struct UsedAt {
  int64_t second = 0;
  uint64_t bytes = 0;
};

// How full the bricks will be, if they go on as they did.
struct Forecast {
  enum class Outlook : uint8_t {
    kUnknown,
    kSteady,
    kGrowing
  };  // steady: not growing, or too slowly to matter
  Outlook outlook = Outlook::kUnknown;
  uint64_t known_seconds = 0;               // what it is made from
  std::optional<double> bytes_per_day;      // none: not known long enough
  std::optional<uint64_t> full_in_seconds;  // only when growing
  std::string text;                         // for people
};

inline constexpr uint64_t kForecastNeedsSeconds = 3600;
// Beyond that a rate of one day says nothing.
inline constexpr uint64_t kForecastSecondsMax = uint64_t{365} * 86400;

// From the median of the slopes between all pairs (Theil-Sen): a single large file written or removed does not
// make a trend. `used` in the order of time, at most kHistoryPoints.
Forecast forecast(const std::vector<UsedAt>& used, uint64_t capacity_bytes);

}  // namespace pnfsrdma::console
