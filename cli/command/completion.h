// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "cli/command/context.h"

namespace pnfsrdma::cli {

// A word that may come next, and what it means (may be empty).
struct Candidate {
  std::string word;
  std::string description;
  bool operator==(const Candidate&) const = default;
};

// What may stand in the place of the last of `words` (the line behind the program's name; the last word may
// be empty), read from the commands themselves: subcommands, or options when it begins with '-'.
std::vector<Candidate> candidates_for(const CLI::App& app, const std::vector<std::string>& words);

// `pnfsrdma completion bash|zsh`: the script to source. It asks the hidden `pnfsrdma completion words`, so
// that it never is of another version than the program.
void add_completion_command(CLI::App& app, Context& context);

}  // namespace pnfsrdma::cli
