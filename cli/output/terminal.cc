// SPDX-License-Identifier: Apache-2.0
#include "cli/output/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>

namespace pnfsrdma::cli {
namespace {

constexpr size_t kColumnsUnknown = 80;

std::string_view environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

size_t columns_of_terminal(int fd) {
  const std::string_view told = environment("COLUMNS");
  size_t columns = 0;
  if (std::from_chars(told.data(), told.data() + told.size(), columns).ec == std::errc() && columns > 0) {
    return columns;
  }
  winsize size{};
  if (::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return kColumnsUnknown;
}

std::string_view sequence_of(Style style) {
  switch (style) {
    case Style::kPlain:
      return "";
    case Style::kBold:
      return "\033[1m";
    case Style::kFaint:
      return "\033[2m";
    case Style::kGood:
      return "\033[32m";
    case Style::kWarning:
      return "\033[33m";
    case Style::kBad:
      return "\033[31;1m";
  }
  return "";
}

}  // namespace

Terminal Terminal::of(int fd) {
  Terminal terminal;
  terminal.interactive = ::isatty(fd) == 1;
  if (!terminal.interactive) return terminal;
  terminal.colours = environment("NO_COLOR").empty() && environment("TERM") != "dumb";
  terminal.columns = columns_of_terminal(fd);
  return terminal;
}

std::string Terminal::styled(std::string_view text, Style style) const {
  if (!colours || style == Style::kPlain || text.empty()) return std::string(text);
  return std::string(sequence_of(style)).append(text).append("\033[0m");
}

}  // namespace pnfsrdma::cli
