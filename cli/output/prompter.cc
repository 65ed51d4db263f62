// SPDX-License-Identifier: Apache-2.0
#include "cli/output/prompter.h"

#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <iostream>

#include "cli/output/text.h"
#include "shared/base/result.h"

namespace pnfsrdma::cli {
namespace {

// Typed characters are not shown while it lives.
class EchoOff {
 public:
  EchoOff() {
    changed_ = ::tcgetattr(STDIN_FILENO, &before_) == 0;
    termios without = before_;
    without.c_lflag &= ~static_cast<tcflag_t>(ECHO);
    if (changed_) ::tcsetattr(STDIN_FILENO, TCSAFLUSH, &without);
  }
  ~EchoOff() {
    if (changed_) ::tcsetattr(STDIN_FILENO, TCSAFLUSH, &before_);
  }
  EchoOff(const EchoOff&) = delete;
  EchoOff& operator=(const EchoOff&) = delete;

 private:
  termios before_{};
  bool changed_ = false;
};

Outcome<std::string> read_line() {
  std::string line;
  if (!std::getline(std::cin, line)) return refuse(ExitCode::kInterrupted, "end of input");
  if (line.ends_with('\r')) line.pop_back();
  return line;
}

}  // namespace

bool TerminalPrompter::is_there() const {
  return ::isatty(STDIN_FILENO) == 1;
}

Outcome<std::string> TerminalPrompter::ask(const std::string& question, bool hidden) {
  if (!is_there()) return read_line();
  std::fputs(question.c_str(), stderr);
  if (!hidden) return read_line();
  const EchoOff off;
  auto line = read_line();
  std::fputc('\n', stderr);
  return line;
}

Outcome<> confirm(Prompter& prompter, const std::string& what, const std::string& name, bool yes) {
  if (yes) return {};
  if (!prompter.is_there()) {
    return refuse(ExitCode::kUsage, what, "There is no terminal to confirm it on.",
                  "add --yes if that is meant");
  }
  TRY_ASSIGN(const std::string typed,
             prompter.ask(printable(what) + "\nType " + printable(name) + " to go on: ", false));
  if (typed == name) return {};
  return refuse(ExitCode::kFailed, "not confirmed: nothing was changed");
}

Outcome<std::string> new_password(Prompter& prompter, const std::string& for_whom) {
  constexpr ptrdiff_t kLeast = 10;  // as server/console/openapi.json has it
  const std::string question = "Password for " + printable(for_whom) + " (at least 10 characters): ";
  TRY_ASSIGN(std::string password, prompter.ask(question, true));
  const auto begins = [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  };  // a character of UTF-8
  if (std::ranges::count_if(password, begins) < kLeast) {
    return refuse(ExitCode::kFailed, "the password is too short: nothing was changed", {},
                  "use at least 10 characters");
  }
  if (!prompter.is_there()) return password;
  TRY_ASSIGN(const std::string again, prompter.ask("Repeat the password: ", true));
  if (again != password) return refuse(ExitCode::kFailed, "the passwords do not match: nothing was changed");
  return password;
}

}  // namespace pnfsrdma::cli
