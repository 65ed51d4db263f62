// SPDX-License-Identifier: Apache-2.0
#include "cli/command/completion.h"

#include <memory>

#include "cli/stat/mount_reader.h"

namespace pnfsrdma::cli {
namespace {

constexpr const char* kBash = R"sh(# pnfsrdma completion for bash: source <(pnfsrdma completion bash)
_pnfsrdma() {
  local current=${COMP_WORDS[COMP_CWORD]} word description
  COMPREPLY=()
  while IFS=$'\t' read -r word description; do
    [[ $word == "$current"* ]] && COMPREPLY+=("$(printf '%q' "$word")")
  done < <(pnfsrdma completion words -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o default -F _pnfsrdma pnfsrdma
)sh";

constexpr const char* kZsh = R"sh(#compdef pnfsrdma
# pnfsrdma completion for zsh: source <(pnfsrdma completion zsh), or a file _pnfsrdma in $fpath
_pnfsrdma() {
  local -a found
  local word description
  while IFS=$'\t' read -r word description; do
    found+=("${word//:/\\:}:${description}")
  done < <(pnfsrdma completion words -- "${(@)words[2,CURRENT]}" 2>/dev/null)
  _describe 'pnfsrdma' found || _files
}
compdef _pnfsrdma pnfsrdma
)sh";

constexpr const char* kFish = R"sh(# pnfsrdma completion for fish: pnfsrdma completion fish | source
function __pnfsrdma_words
    set -l line (commandline -opc) (commandline -ct)
    set -e line[1]
    pnfsrdma completion words -- $line 2>/dev/null
end
complete -c pnfsrdma -a '(__pnfsrdma_words)'
)sh";

const CLI::App* subcommand_of(const CLI::App& app, const std::string& name) {
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (command->get_name() == name) return command;
  }
  return nullptr;
}

// An option that stands before its value: the value is not completed here.
bool wants_value(const CLI::App& app, const std::string& word) {
  for (const CLI::App* level = &app; level != nullptr; level = level->get_parent()) {
    for (const CLI::Option* option : level->get_options()) {
      if (option->check_name(word)) return option->get_items_expected_min() > 0;
    }
  }
  return false;
}

void add_options(const CLI::App& app, const std::string& begun, std::vector<Candidate>& found) {
  for (const CLI::App* level = &app; level != nullptr; level = level->get_parent()) {
    for (const CLI::Option* option : level->get_options()) {
      for (const std::string& name : option->get_lnames()) {
        const std::string word = "--" + name;
        if (word.starts_with(begun)) found.push_back({word, option->get_description()});
      }
    }
  }
}

}  // namespace

std::vector<Candidate> candidates_for(const CLI::App& app, const std::vector<std::string>& words) {
  const CLI::App* level = &app;
  for (size_t i = 0; i + 1 < words.size(); ++i) {
    if (words[i].starts_with('-')) {
      if (words[i].find('=') == std::string::npos && wants_value(*level, words[i])) ++i;
    } else if (const CLI::App* deeper = subcommand_of(*level, words[i])) {
      level = deeper;
    }
  }
  const std::string begun = words.empty() ? "" : words.back();
  if (words.size() > 1 && words[words.size() - 2].starts_with('-') &&
      wants_value(*level, words[words.size() - 2])) {
    return {};
  }
  std::vector<Candidate> found;
  if (begun.starts_with('-')) {
    add_options(*level, begun, found);
    return found;
  }
  for (const CLI::App* command : level->get_subcommands([](const CLI::App*) { return true; })) {
    // Commands of the empty group are not for people.
    if (command->get_group().empty() || !command->get_name().starts_with(begun)) continue;
    found.push_back({command->get_name(), command->get_description()});
  }
  if (level->get_name() == "stat") {
    for (const Mounted& mounted : MountReader::find("").value_or(std::vector<Mounted>{})) {
      if (mounted.path.starts_with(begun)) found.push_back({mounted.path, mounted.source});
    }
  }
  return found;
}

void add_completion_command(CLI::App& app, Context& context) {
  CLI::App* const command =
      app.add_subcommand("completion", "Shell completion: source <(pnfsrdma completion bash)");
  command->require_subcommand(1);
  for (const auto& [shell, script] :
       {std::pair{"bash", kBash}, std::pair{"zsh", kZsh}, std::pair{"fish", kFish}}) {
    command->add_subcommand(shell, std::string("the script for ") + shell)
        ->callback([&context, script = script] {
          context.action = [&context, script] {
            context.output.text(script);
            return ExitCode::kDone;
          };
        });
  }
  CLI::App* const words = command->add_subcommand("words", "what may come next")->group("");
  // Whatever stands behind "--" is the line, and nothing of it for the commands above.
  words->fallthrough(false);
  const auto line = std::make_shared<std::vector<std::string>>();
  words->add_option("word", *line, "of the line");
  words->callback([&app, &context, line] {
    context.action = [&app, &context, line] {
      for (const Candidate& candidate : candidates_for(app, *line)) {
        context.output.line(candidate.word + '\t' + candidate.description);
      }
      return ExitCode::kDone;
    };
  });
}

}  // namespace pnfsrdma::cli
