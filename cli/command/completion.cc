// SPDX-License-Identifier: Apache-2.0
#include "cli/command/completion.h"

#include <array>
#include <memory>

#include "cli/output/json_member.h"
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

// Where names of things come from.
struct Names {
  const char* noun;
  const char* path;
  const char* word;  // JSON pointers
  const char* description;
};
constexpr std::array kNames = {
    Names{"brick", "/bricks", "/id", "/address"},
    Names{"brick", "/bricks", "/name", "/address"},
    Names{"device", "/bricks", "/id", "/address"},
    Names{"device", "/bricks", "/name", "/address"},
    Names{"alert", "/alerts", "/id", "/summary"},
    Names{"client", "/clients", "/id", "/name"},
    Names{"export", "/exports", "/path", "/source"},
    Names{"layout", "/layouts", "/id", "/path"},
    Names{"user", "/users", "/name", "/role"},
    Names{"token", "/tokens", "/name", "/user"},
    Names{"--user", "/quotas?kind=user", "/name", "/id"},
    Names{"--group", "/quotas?kind=group", "/name", "/id"},
    Names{"--tree", "/quotas?kind=tree", "/name", "/id"},
    Names{"job", "/jobs", "/id", "/kind"},
    Names{"snapshot", "/snapshots", "/name", "/created"},
    Names{"cluster", "/cluster", "/name", "/address"},
};

void add_names(const std::string& noun, const std::string& begun, const AskServer& ask,
               std::vector<Candidate>& found) {
  for (const Names& names : kNames) {
    if (noun != names.noun) continue;
    for (const nlohmann::json& each : ask(names.path)) {
      const auto named = nlohmann::json::json_pointer(names.word);
      if (!each.contains(named) || each[named] == "" || each[named].is_null())
        continue;  // people have not named it
      const std::string text = text_at(each, names.word);
      const std::string word = text.empty() ? std::to_string(number_at(each, names.word)) : text;
      if (word.starts_with(begun)) found.push_back({word, text_at(each, names.description)});
    }
  }
  if (noun != "config") return;
  for (const nlohmann::json& each : ask("/configuration")) {
    const std::string word = text_at(each, "/name");
    if (flag_at(each, "/run_time") && word.starts_with(begun))
      found.push_back({word, "now " + each["value"].dump()});
  }
}

// The values of an option: words it is checked against, or names of what it is called after.
void add_values(const std::string& option, const std::string& begun, const AskServer& ask,
                std::vector<Candidate>& found) {
  if (option == "--client" || option == "--brick") return add_names(option.substr(2), begun, ask, found);
  if (option == "--user" || option == "--group" || option == "--tree")
    return add_names(option, begun, ask, found);
  const std::array<std::pair<const char*, std::vector<const char*>>, 3> known = {
      {{"--role", {"viewer", "operator", "admin"}},
       {"--level", {"debug", "info", "warning", "error"}},
       {"--output", {"json", "table"}}}};
  for (const auto& [name, values] : known) {
    for (const std::string value : values) {
      if ((option == name || (option == "-o" && name == std::string("--output"))) && value.starts_with(begun))
        found.push_back({value, ""});
    }
  }
}

// Whether a verb takes the name of something that is there.
bool takes_a_name(const CLI::App& verb) {
  const std::string name = verb.get_name();
  // A token is no name.
  if (name == "list" || name == "create" || name == "add" || name == "join") return false;
  if (verb.get_parent() == nullptr) return false;
  for (const CLI::Option* option : verb.get_options()) {
    if (option->get_positional()) return true;
  }
  return false;
}

}  // namespace

std::vector<Candidate> candidates_for(const CLI::App& app, const std::vector<std::string>& words,
                                      const AskServer& ask) {
  const CLI::App* level = &app;
  size_t names = 0;  // of things, behind the verb
  for (size_t i = 0; i + 1 < words.size(); ++i) {
    if (words[i].starts_with('-')) {
      if (words[i].find('=') == std::string::npos && wants_value(*level, words[i])) ++i;
    } else if (const CLI::App* deeper = subcommand_of(*level, words[i])) {
      level = deeper;
    } else {
      ++names;
    }
  }
  const std::string begun = words.empty() ? "" : words.back();
  if (words.size() > 1 && words[words.size() - 2].starts_with('-') &&
      wants_value(*level, words[words.size() - 2])) {
    std::vector<Candidate> values;
    add_values(words[words.size() - 2], begun, ask, values);
    return values;
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
  if (names == 0 && takes_a_name(*level)) add_names(level->get_parent()->get_name(), begun, ask, found);
  return found;
}

ApiOptions api_options_of(const std::vector<std::string>& words) {
  ApiOptions options;
  for (size_t i = 0; i < words.size(); ++i) {
    for (const auto& [name, value] :
         {std::pair{"--socket", &options.socket}, std::pair{"--server", &options.server},
          std::pair{"--token-file", &options.token_file}, std::pair{"--ca", &options.ca}}) {
      if (words[i] == name && i + 1 < words.size()) *value = words[i + 1];
      if (words[i].starts_with(name + std::string("=")))
        *value = words[i].substr(std::string(name).size() + 1);
    }
    if (words[i] == "--insecure") options.insecure = true;
  }
  return options;
}

namespace {

// Nobody wants to wait for the end of a word.
constexpr std::chrono::seconds kPatience(2);
constexpr size_t kNamesMax = 200;

nlohmann::json ask_server(const ApiOptions& options, const std::string& path) {
  auto client = ApiClient::make(options);
  if (!client) return nlohmann::json::array();
  client->wait_at_most(kPatience);
  const bool configuration = path == "/configuration";
  if (!configuration && path != "/cluster")
    return client->list(path, {}, kNamesMax).value_or(nlohmann::json::array());
  const auto now = client->get(path);
  if (!now) return nlohmann::json::array();
  return configuration ? settings_of(now->body) : now->body.value("members", nlohmann::json::array());
}

}  // namespace

void add_completion_command(CLI::App& app, Administration& administration) {
  Context& context = administration.context;
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
      const auto ask = [line](const std::string& path) { return ask_server(api_options_of(*line), path); };
      for (const Candidate& candidate : candidates_for(app, *line, ask)) {
        context.output.line(candidate.word + '\t' + candidate.description);
      }
      return ExitCode::kDone;
    };
  });
}

}  // namespace pnfsrdma::cli
