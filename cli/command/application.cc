// SPDX-License-Identifier: Apache-2.0
#include "cli/command/application.h"

#include "cli/cluster/membership_commands.h"
#include "cli/command/completion.h"
#include "cli/command/host_commands.h"
#include "cli/output/nearest_word.h"
#include "shared/version/version.h"

namespace pnfsrdma::cli {
namespace {

constexpr const char* kExitCodes = R"(Exit codes:
  0 done   1 refused or failed (doctor: a problem; diff: not the same)   2 usage (diff, restore: trouble)
  3 no answer   4 not permitted   5 not found   6 changed meanwhile or in use
  130 interrupted   126, 127 run: the program cannot be started, there is none)";

// Help and version are "errors" of code 0.
int usage(int code) {
  return code == 0 ? 0 : static_cast<int>(ExitCode::kUsage);
}

// The command that was understood, and the words that led to it.
struct Understood {
  const CLI::App* command;
  std::string so_far = "pnfsrdma ";

  explicit Understood(const CLI::App& app) : command(&app) {
    while (!command->get_subcommands().empty()) {
      command = command->get_subcommands().front();
      so_far += command->get_name() + ' ';
    }
  }
};

std::string question(const std::string& unknown, const std::vector<std::string>& known) {
  const auto nearest = nearest_word(unknown, known);
  return nearest ? "; did you mean \"" + *nearest + "\"?" : "";
}

// A word that is no command, behind the nouns that were understood.
Failure no_command(const CLI::App& app, const std::string& unknown) {
  const Understood understood(app);
  std::vector<std::string> known;
  for (const CLI::App* command : understood.command->get_subcommands([](const CLI::App*) { return true; }))
    known.push_back(command->get_name());
  return {ExitCode::kUsage,
          "there is no command \"" + unknown + "\"" + question(unknown, known),
          {},
          understood.so_far + "--help"};
}

// A word more than the command takes, or an option it does not have.
Failure not_expected(const CLI::App& app, const std::string& unknown) {
  const Understood understood(app);
  if (!unknown.starts_with('-')) {
    return {ExitCode::kUsage, "unexpected argument \"" + unknown + "\"", {}, understood.so_far + "--help"};
  }
  std::vector<std::string> known;
  for (const CLI::App* level = understood.command; level != nullptr; level = level->get_parent()) {
    for (const CLI::Option* option : level->get_options()) {
      for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
    }
  }
  return {ExitCode::kUsage,
          "there is no option " + unknown + question(unknown, known),
          {},
          understood.so_far + "--help"};
}

// What stands behind `run PROGRAM` are the program's words, whatever they look like.
std::vector<char*> with_program_apart(int count, char** arguments) {
  static char dashes[] = "--";
  std::vector<char*> words(arguments, arguments + count);
  if (count < 3 || std::string_view(words[1]) != "run") return words;
  for (size_t i = 2; i < words.size(); ++i) {
    const std::string_view word = words[i];
    if (word == "--library" || word == "-o" || word == "--output") ++i;
    if (word.starts_with('-') && word != "--") continue;
    if (word != "--") words.insert(words.begin() + static_cast<ptrdiff_t>(i), dashes);
    break;
  }
  return words;
}

}  // namespace

void build_application(CLI::App& app, Administration& administration) {
  Context& context = administration.context;
  app.name("pnfsrdma");
  app.description("Administers persistent memory on the network: mounts, bricks, exports, layouts, clients.");
  app.footer(kExitCodes);
  app.set_version_flag("-V,--version", version_text("pnfsrdma"));
  // Options of above may stand behind the command: pnfsrdma stat --json
  app.fallthrough();
  app.require_subcommand(1);
  app.add_flag("--json", context.output.json, "results as JSON, for programs");
  app.add_option_function<std::string>(
         "-o,--output", [&context](const std::string& form) { context.output.json = form == "json"; },
         "-o json is the same as --json")
      ->check(CLI::IsMember({"json", "table"}));
  app.add_flag("-y,--yes", administration.yes, "do not ask before destroying something");
  ApiOptions& api = administration.api;
  app.add_option("--socket", api.socket, "the console's Unix socket (" + api.socket + ")");
  app.add_option("--server", api.server,
                 "the console over the network: https://HOST:8443 ($PNFSRDMA_SERVER)");
  app.add_option("--token-file", api.token_file,
                 "a file with the token ($PNFSRDMA_TOKEN_FILE, $PNFSRDMA_TOKEN)");
  app.add_option("--ca", api.ca, "certificates to trust, PEM ($PNFSRDMA_CA)");
  app.add_flag("--insecure", api.insecure, "trust any certificate: whoever answers receives the token");
  add_host_commands(app, administration);
  add_brick_commands(app, administration);
  add_export_commands(app, administration);
  add_quota_commands(app, administration);
  add_snapshot_commands(app, administration);
  add_holding_commands(app, administration);
  add_alert_commands(app, administration);
  add_job_commands(app, administration);
  add_event_commands(app, administration);
  add_account_commands(app, administration);
  add_server_commands(app, administration);
  add_cluster_commands(app, administration);
  add_membership_commands(app, administration);
  add_completion_command(app, administration);
}

int run_application(int count, char** arguments) {
  Output output(stdout, stderr);
  Context context{output, {}};
  TerminalPrompter prompter;
  Administration administration{context, {}, prompter};
  CLI::App app;
  build_application(app, administration);
  try {
    std::vector<char*> words = with_program_apart(count, arguments);
    app.parse(static_cast<int>(words.size()), words.data());
  } catch (const CLI::RequiredError& error) {
    // CLI11 misses the command before it says that it does not know the word in its place.
    const std::vector<std::string> unknown = app.remaining(true);
    if (unknown.empty()) return usage(app.exit(error));
    return static_cast<int>(output.complain(no_command(app, unknown.front())));
  } catch (const CLI::ExtrasError& error) {
    const std::vector<std::string> unknown = app.remaining(true);
    if (unknown.empty()) return usage(app.exit(error));
    return static_cast<int>(output.complain(not_expected(app, unknown.front())));
  } catch (const CLI::ParseError& error) {
    return usage(app.exit(error));
  }
  try {
    return static_cast<int>(context.action());
  } catch (const nlohmann::json::exception& error) {
    // A server of another version: members of other types than its description says.
    return static_cast<int>(
        output.complain({ExitCode::kFailed, "the answer has a form that this program does not know",
                         error.what(), "use the pnfsrdma of the server's version"}));
  }
}

}  // namespace pnfsrdma::cli
