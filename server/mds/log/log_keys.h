// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace pnfsrdma::mds {

// Numbers the values of the log: 1, 2, 3 …
using LogPosition = uint64_t;

// Of a value, and by it of all before: each has the hash of the one before it in it (log_record.h).
using LogHash = std::array<std::byte, 16>;

// A value of the log, with all before it. Position 0: nothing of it.
struct LogPoint {
  LogPosition position = 0;
  LogHash hash{};
  bool operator==(const LogPoint&) const = default;
};

// What the log consists of in the key server: keys behind one prefix.
//
//   identity        which log this is: 32 hexadecimal digits; made by the first server
//   leader          who leads, LeadClaim::text(). Its revision is the lead: every change of the leader's requires it
//   renewal         put by the leader again and again, and known by its revision. A PositionRow: the last value, and
//                   the bytes of those that are not trimmed
//   trimmed         decimal: the log up to here may be gone
//   takeovers       decimal: how often a server has taken the lead from another one that had not given it back
//   log/<16 digits> the values, hexadecimal (log_record.h)
//   member/<name>   a PositionRow: up to where this server has the log on its own medium, and its LeadClaim::place
struct LogKeys {
  std::string prefix;

  std::string identity() const { return prefix + "/identity"; }
  std::string leader() const { return prefix + "/leader"; }
  std::string renewal() const { return prefix + "/renewal"; }
  std::string trimmed() const { return prefix + "/trimmed"; }
  std::string takeovers() const { return prefix + "/takeovers"; }
  std::string value(LogPosition position) const;
  // Behind all values.
  std::string values_end() const { return prefix + "/log0"; }
  std::string member(std::string_view name) const { return prefix + "/member/" + std::string(name); }
  std::string members() const { return prefix + "/member/"; }
  std::string members_end() const { return prefix + "/member0"; }
  // nullopt: no value's key.
  std::optional<LogPosition> position_of(std::string_view key) const;
};

// nullopt: no decimal number.
std::optional<uint64_t> parse_decimal(std::string_view text);

// A row "<position> <rest>".
struct PositionRow {
  LogPosition position = 0;
  std::string rest;

  std::string text() const { return std::to_string(position) + " " + rest; }
  // What is no number is 0.
  static PositionRow parse(std::string_view text);
};

}  // namespace pnfsrdma::mds
