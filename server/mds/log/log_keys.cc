// SPDX-License-Identifier: Apache-2.0
#include "server/mds/log/log_keys.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>

namespace pnfsrdma::mds {
namespace {

constexpr std::string_view kValues = "/log/";

std::optional<uint64_t> parse_number(std::string_view text, int base) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace

std::string LogKeys::value(LogPosition position) const {
  return fmt::format("{}{}{:016x}", prefix, kValues, position);
}

std::optional<LogPosition> LogKeys::position_of(std::string_view key) const {
  if (!key.starts_with(prefix)) return std::nullopt;
  key.remove_prefix(prefix.size());
  if (!key.starts_with(kValues)) return std::nullopt;
  return parse_number(key.substr(kValues.size()), 16);
}

std::optional<uint64_t> parse_decimal(std::string_view text) {
  return parse_number(text, 10);
}

PositionRow PositionRow::parse(std::string_view text) {
  const size_t end = std::min(text.find(' '), text.size());
  return {parse_decimal(text.substr(0, end)).value_or(0),
          std::string(text.substr(std::min(end + 1, text.size())))};
}

}  // namespace pnfsrdma::mds
