// SPDX-License-Identifier: Apache-2.0
#include "shared/base/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/sinks/syslog_sink.h>
#include <spdlog/spdlog.h>

#include <algorithm>

#include "shared/base/guarded.h"
#include "shared/base/log_observer.h"
#include "shared/base/syslog.h"

namespace pnfsrdma {
namespace {

spdlog::level::level_enum to_spdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
    case LogLevel::kOff:
      return spdlog::level::off;
  }
  return spdlog::level::info;
}

// The one logger of the process. A function-local static: built at first use, thread-safely.
spdlog::logger& logger() {
  static spdlog::logger instance = [] {
    spdlog::logger made("pnfsrdma", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made.set_pattern("%Y-%m-%dT%H:%M:%S.%e %l %v");
    made.flush_on(spdlog::level::debug);
    return made;
  }();
  return instance;
}

// Like the logger: one per process.
Guarded<LogObserver>& observer() {
  static Guarded<LogObserver> instance;
  return instance;
}

// Who writes the lines instead of the logger: one per process. Set before there are threads.
LogObserver& writer() {
  static LogObserver instance;
  return instance;
}

void write_line(LogLevel level, std::string_view component, std::string_view text) {
  auto observing = observer().lock();
  if (writer()) {
    writer()(level, component, text);
  } else {
    logger().log(to_spdlog(level), "{}: {}", component, text);
  }
  if (*observing) (*observing)(level, component, text);
}

bool is_control(char c) {
  return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
}

}  // namespace

void log_line(LogLevel level, std::string_view component, std::string_view text) {
  if (std::none_of(text.begin(), text.end(), is_control)) {
    write_line(level, component, text);
    return;
  }
  // One event is one line, whatever a peer has put into its words.
  std::string clean(text);
  std::replace_if(clean.begin(), clean.end(), is_control, ' ');
  write_line(level, component, clean);
}

void observe_log(LogObserver wanted) {
  *observer().lock() = std::move(wanted);
}

void write_log_with(LogObserver wanted) {
  writer() = std::move(wanted);
}

void log_to_syslog(const char* ident) {
  // With formatting, so that our pattern counts; time and level are syslog's own.
  logger().sinks() = {std::make_shared<spdlog::sinks::syslog_sink_mt>(ident, LOG_PID, LOG_DAEMON, true)};
  logger().set_pattern("%v");
}

void set_log_level(LogLevel level) {
  logger().set_level(to_spdlog(level));
}

bool log_enabled(LogLevel level) {
  return logger().should_log(to_spdlog(level));
}

}  // namespace pnfsrdma
