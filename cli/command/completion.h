// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/resource/resource_command.h"

namespace pnfsrdma::cli {

// A word that may come next, and what it means (may be empty).
struct Candidate {
  std::string word;
  std::string description;
  bool operator==(const Candidate&) const = default;
};

// What a list of the API has now ("/users"; "/cluster": the members of etcd): an array, empty when nobody answers.
using AskServer = std::function<nlohmann::json(const std::string& path)>;

// What may stand in the place of the last of `words` (the line behind the program's name; the last word may
// be empty), read from the commands themselves: subcommands, or options when it begins with '-'. Names of bricks,
// users, settings and so on come from `ask`.
std::vector<Candidate> candidates_for(const CLI::App& app, const std::vector<std::string>& words,
                                      const AskServer& ask);

// The options before a command that say which server a line means.
ApiOptions api_options_of(const std::vector<std::string>& words);

// `pnfsrdma completion bash|zsh|fish`: the script to source. It asks the hidden `pnfsrdma completion words`, so
// that it never is of another version than the program.
void add_completion_command(CLI::App& app, Administration& administration);

}  // namespace pnfsrdma::cli
