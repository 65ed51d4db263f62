// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cli/output/failure.h"

namespace pnfsrdma::cli {

// Who types at the terminal: asked for what must not happen by accident, and for secrets.
class Prompter {
 public:
  virtual ~Prompter() = default;
  // One line, without its end; kInterrupted at the end of input. `hidden`: not shown while it is typed.
  virtual Outcome<std::string> ask(const std::string& question, bool hidden) = 0;
  virtual bool is_there() const = 0;  // input is a terminal
};

// At standard input; questions go to standard error.
class TerminalPrompter final : public Prompter {
 public:
  Outcome<std::string> ask(const std::string& question, bool hidden) override;
  bool is_there() const override;
};

// Asks for `name` to be typed before something is destroyed: "`what`\nType NAME to go on: ". `yes` (--yes)
// answers it. kUsage when nobody is there to ask, kFailed when something else was typed.
Outcome<> confirm(Prompter& prompter, const std::string& what, const std::string& name, bool yes);

// A new password, twice from a human, once from a pipe.
Outcome<std::string> new_password(Prompter& prompter, const std::string& for_whom);

}  // namespace pnfsrdma::cli
