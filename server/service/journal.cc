// SPDX-License-Identifier: Apache-2.0
#include "server/service/journal.h"

#include <fmt/core.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

// Where a line stands in the source tells an administrator nothing.
#define SD_JOURNAL_SUPPRESS_LOCATION
#include <systemd/sd-journal.h>

#include "shared/base/log_observer.h"

namespace pnfsrdma {
namespace {

int priority_of(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return LOG_DEBUG;
    case LogLevel::kInfo:
      return LOG_INFO;
    case LogLevel::kWarning:
      return LOG_WARNING;
    case LogLevel::kError:
    case LogLevel::kOff:
      return LOG_ERR;
  }
  return LOG_INFO;
}

bool stderr_is_the_journal() {
  const char* stream = std::getenv("JOURNAL_STREAM");
  struct stat status{};
  if (stream == nullptr || fstat(STDERR_FILENO, &status) != 0) return false;
  return fmt::format("{}:{}", status.st_dev, status.st_ino) == stream;
}

}  // namespace

std::vector<std::string> journal_fields(const char* identifier, LogLevel level, std::string_view component,
                                        std::string_view text) {
  return {fmt::format("MESSAGE={}: {}", component, text), fmt::format("PRIORITY={}", priority_of(level)),
          fmt::format("SYSLOG_IDENTIFIER={}", identifier), fmt::format("PNFSRDMA_COMPONENT={}", component),
          fmt::format("PNFSRDMA_EVENT={}", text.substr(0, text.find(' ')))};
}

void log_to_journal(const char* identifier) {
  if (!stderr_is_the_journal()) return;
  write_log_with([identifier](LogLevel level, std::string_view component, std::string_view text) {
    std::vector<std::string> fields = journal_fields(identifier, level, component, text);
    std::vector<iovec> parts;
    for (std::string& field : fields) parts.push_back({field.data(), field.size()});
    if (sd_journal_sendv(parts.data(), static_cast<int>(parts.size())) >= 0) return;
    fmt::print(stderr, "<{}>{}: {}\n", priority_of(level), component, text);  // as sd-daemon(3) reads it
  });
}

}  // namespace pnfsrdma
