// SPDX-License-Identifier: Apache-2.0
#include "cli/output/units.h"

#include <fmt/format.h>

#include <array>
#include <cctype>
#include <charconv>
#include <ctime>

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

constexpr uint64_t kMost = uint64_t{1} << 63;

// A number and what stands behind it. None: no number, or one without an end.
std::optional<std::pair<uint64_t, std::string_view>> number_and_unit(std::string_view text) {
  uint64_t number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  if (parsed.ec != std::errc()) return std::nullopt;
  return std::pair(number, text.substr(static_cast<size_t>(parsed.ptr - text.data())));
}

// `number` times `step` to the power that the letter has in "KMGTP".
std::optional<uint64_t> magnified(uint64_t number, std::string_view letter, uint64_t step) {
  constexpr std::string_view kLetters = "KMGTP";
  if (letter.size() > 1) return std::nullopt;
  size_t power = 0;
  if (!letter.empty()) {
    const size_t at = kLetters.find(static_cast<char>(std::toupper(static_cast<unsigned char>(letter[0]))));
    if (at == std::string_view::npos) return std::nullopt;
    power = at + 1;
  }
  for (; power > 0; --power) {
    if (number > kMost / step) return std::nullopt;
    number *= step;
  }
  return number <= kMost ? std::optional(number) : std::nullopt;
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

std::optional<uint64_t> bytes_of(std::string_view text) {
  const auto parts = number_and_unit(text);
  if (!parts) return std::nullopt;
  auto [number, unit] = *parts;
  if (unit.size() == 3 && unit.ends_with("iB")) unit.remove_suffix(2);
  return magnified(number, unit, 1024);
}

std::optional<uint64_t> count_of(std::string_view text) {
  const auto parts = number_and_unit(text);
  return parts ? magnified(parts->first, parts->second, 1000) : std::nullopt;
}

std::optional<uint64_t> seconds_of(std::string_view text) {
  const auto parts = number_and_unit(text);
  if (!parts) return std::nullopt;
  const auto [number, unit] = *parts;
  if (number == 0 && unit.empty()) return 0;
  const uint64_t length = unit == "s" ? 1 : unit == "m" ? 60 : unit == "h" ? 3600 : unit == "d" ? 86400 : 0;
  return length > 0 && number <= kMost / length ? std::optional(number * length) : std::nullopt;
}

std::optional<std::chrono::system_clock::time_point> time_of(const std::string& text) {
  std::tm parts{};
  if (::strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &parts) == nullptr) return std::nullopt;
  return std::chrono::system_clock::from_time_t(::timegm(&parts));
}

}  // namespace pnfsrdma::cli
