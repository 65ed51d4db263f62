// SPDX-License-Identifier: Apache-2.0
#include "cli/output/units.h"

#include <fmt/format.h>

#include <array>
#include <string_view>

namespace pnfsrdma::cli {
namespace {

template <size_t kUnits>
std::string scaled(double value, double step, const std::array<std::string_view, kUnits>& units) {
  size_t unit = 0;
  // Before the digits would round up to the step itself.
  while (value >= step - step / 2000 && unit + 1 < kUnits) {
    value /= step;
    ++unit;
  }
  return unit == 0 ? fmt::format("{:.0f}{}", value, units[0]) : fmt::format("{:.1f}{}", value, units[unit]);
}

}  // namespace

std::string bytes_text(double bytes) {
  static constexpr std::array<std::string_view, 7> kUnits = {" B",   " KiB", " MiB", " GiB",
                                                             " TiB", " PiB", " EiB"};
  return scaled(bytes, 1024, kUnits);
}

std::string count_text(double count) {
  static constexpr std::array<std::string_view, 5> kUnits = {"", " k", " M", " G", " T"};
  return scaled(count, 1000, kUnits);
}

std::string duration_text(std::chrono::seconds duration) {
  const int64_t seconds = duration.count();
  if (seconds < 60) return fmt::format("{} s", seconds);
  if (seconds < 3600) return fmt::format("{} min {} s", seconds / 60, seconds % 60);
  if (seconds < 86400) return fmt::format("{} h {} min", seconds / 3600, seconds / 60 % 60);
  return fmt::format("{} d {} h", seconds / 86400, seconds / 3600 % 24);
}

std::string latency_text(std::chrono::duration<double> latency) {
  const double microseconds = latency.count() * 1e6;
  if (microseconds < 1000) return fmt::format("{:.1f} us", microseconds);
  if (microseconds < 1e6) return fmt::format("{:.1f} ms", microseconds / 1e3);
  return fmt::format("{:.1f} s", microseconds / 1e6);
}

}  // namespace pnfsrdma::cli
