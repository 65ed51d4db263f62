// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/core.h>

#include <string>
#include <string_view>

namespace pnfsrdma {

enum class LogLevel { kDebug, kInfo, kWarning, kError, kOff };

// The process's log: one line each on stderr (journald adds the rest), component first, then a stable event
// name, then `key=value` pairs: "brick: session-opened client=7 transport=iwarp". Thread-safe. Counters, not
// logs, per I/O.
void log_line(LogLevel level, std::string_view component, std::string_view text);
void set_log_level(LogLevel level);
bool log_enabled(LogLevel level);

template <typename... Args>
void log(LogLevel level, std::string_view component, fmt::format_string<Args...> format, Args&&... args) {
  if (log_enabled(level)) log_line(level, component, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void log_debug(std::string_view component, fmt::format_string<Args...> format, Args&&... args) {
  log(LogLevel::kDebug, component, format, std::forward<Args>(args)...);
}
template <typename... Args>
void log_info(std::string_view component, fmt::format_string<Args...> format, Args&&... args) {
  log(LogLevel::kInfo, component, format, std::forward<Args>(args)...);
}
template <typename... Args>
void log_warning(std::string_view component, fmt::format_string<Args...> format, Args&&... args) {
  log(LogLevel::kWarning, component, format, std::forward<Args>(args)...);
}
template <typename... Args>
void log_error(std::string_view component, fmt::format_string<Args...> format, Args&&... args) {
  log(LogLevel::kError, component, format, std::forward<Args>(args)...);
}

}  // namespace pnfsrdma
