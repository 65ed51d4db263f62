// SPDX-License-Identifier: Apache-2.0
#include "server/console/forecast.h"

#include <fmt/format.h>

#include <algorithm>

namespace pnfsrdma::console {

namespace {

// Bytes per second; `used` has two elements at least.
double median_slope(const std::vector<UsedAt>& used) {
  std::vector<double> slopes;
  slopes.reserve(used.size() * (used.size() - 1) / 2);
  for (size_t i = 0; i < used.size(); ++i) {
    for (size_t j = i + 1; j < used.size(); ++j) {
      const auto seconds = static_cast<double>(used[j].second - used[i].second);
      if (seconds > 0)
        slopes.push_back((static_cast<double>(used[j].bytes) - static_cast<double>(used[i].bytes)) / seconds);
    }
  }
  if (slopes.empty()) return 0;
  const auto middle = slopes.begin() + static_cast<ptrdiff_t>(slopes.size() / 2);
  std::ranges::nth_element(slopes, middle);
  return *middle;
}

std::string about(double seconds) {
  constexpr double kHour = 3600;
  constexpr double kDay = 24 * kHour;
  if (seconds < 1.5 * kHour) return fmt::format("{:.0f} minutes", std::max(1.0, seconds / 60));
  if (seconds < 2 * kDay) return fmt::format("{:.0f} hours", seconds / kHour);
  return fmt::format("{:.0f} days", seconds / kDay);
}

}  // namespace

Forecast forecast(const std::vector<UsedAt>& used, uint64_t capacity_bytes) {
  Forecast found;
  if (!used.empty()) found.known_seconds = static_cast<uint64_t>(used.back().second - used.front().second);
  if (capacity_bytes == 0) {
    found.text = "No forecast: there is no capacity yet.";
    return found;
  }
  if (found.known_seconds < kForecastNeedsSeconds) {
    found.text = "No forecast yet: it needs an hour of history.";
    return found;
  }
  const double slope = median_slope(used);
  found.bytes_per_day = slope * 86400;
  const uint64_t now = used.back().bytes;
  const double left = now >= capacity_bytes ? 0 : static_cast<double>(capacity_bytes - now);
  const std::string span = found.known_seconds >= 23 * 3600 ? std::string("24 hours")
                                                            : about(static_cast<double>(found.known_seconds));
  found.outlook = Forecast::Outlook::kSteady;
  if (slope <= 0) {
    found.text = "Used space did not grow in the last " + span + ".";
  } else if (left / slope > static_cast<double>(kForecastSecondsMax)) {
    found.text = "Not full within a year, at the rate of the last " + span + ".";
  } else {
    found.outlook = Forecast::Outlook::kGrowing;
    found.full_in_seconds = static_cast<uint64_t>(left / slope);
    found.text = left == 0
                     ? "Full."
                     : "Full in about " + about(left / slope) + " at the rate of the last " + span + ".";
  }
  return found;
}

}  // namespace pnfsrdma::console
