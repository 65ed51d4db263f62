// SPDX-License-Identifier: Apache-2.0
#include "cli/command/host_commands.h"

#include <array>
#include <charconv>
#include <cmath>
#include <memory>
#include <optional>
#include <string>

#include "cli/api/token.h"
#include "cli/clone/clone_command.h"
#include "cli/doctor/doctor_command.h"
#include "cli/doctor/system_host.h"
#include "cli/run/run_command.h"
#include "cli/stat/stat_command.h"
#include "cli/tree/diff_command.h"
#include "cli/tree/restore_command.h"
#include "shared/base/result.h"

namespace pnfsrdma::cli {
namespace {

constexpr double kWatchSeconds = 2;

std::optional<double> number(const std::string& word) {
  double value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size()) return std::nullopt;
  return value;
}

// [MOUNT] [SECONDS [REPORTS]] in any order, as zpool iostat and nfsiostat take them. A directory called "5" is
// "./5".
void take_words(const std::array<std::string, 3>& words, StatOptions& options) {
  for (const std::string& word : words) {
    if (word.empty()) continue;
    const auto value = number(word);
    if (!value) {
      if (!options.path.empty())
        throw CLI::ValidationError("mount", "one mount, not " + options.path + " and " + word);
      options.path = word;
    } else if (!options.watch) {
      if (*value < 0.1 || *value > 86400)
        throw CLI::ValidationError("seconds", word + " is not in 0.1 - 86400");
      options.watch = *value;
    } else if (options.count == 0 && *value >= 1 && *value == std::floor(*value)) {
      options.count = static_cast<uint64_t>(*value);
    } else {
      throw CLI::ValidationError("reports", "unexpected argument " + word);
    }
  }
}

void add_stat(CLI::App& app, Context& context) {
  CLI::App* const command =
      app.add_subcommand("stat", "What the mounts of this host do: transport, durability, counters, rates");
  const auto options = std::make_shared<StatOptions>();
  const auto words = std::make_shared<std::array<std::string, 3>>();
  command->add_option("mount", (*words)[0], "the mount, or a path in it (default: all mounts)");
  command->add_option("seconds", (*words)[1], "show rates, every so many seconds: as --watch --interval");
  command->add_option("reports", (*words)[2], "stop after so many reports: as --count");
  CLI::Option* const prometheus = command->add_flag(
      "--prometheus", options->prometheus, "Prometheus text, for node_exporter's textfile collector");
  const auto seconds = std::make_shared<double>(kWatchSeconds);
  const auto watching = std::make_shared<bool>(false);
  CLI::Option* const watch = command->add_flag(
      "-w,--watch", *watching, "show rates per second until interrupted, as zpool iostat does");
  command->add_option("-i,--interval", *seconds, "with --watch: seconds between reports (2)")
      ->check(CLI::Range(0.1, 86400.0))
      ->needs(watch);
  command->add_option("-c,--count", options->count, "with --watch: stop after so many reports")->needs(watch);
  prometheus->excludes(watch);
  command->callback([&context, options, seconds, watching, words, prometheus] {
    take_words(*words, *options);
    if (*watching && !options->watch) options->watch = *seconds;
    if (options->watch && prometheus->count() > 0) throw CLI::ExcludesError("--prometheus", "SECONDS");
    context.does([&context, options] { return run_stat(*options, context.output); });
  });
}

void add_clone(CLI::App& app, Context& context) {
  CLI::App* const command = app.add_subcommand(
      "clone",
      "A second file in the memory of the first, at once and whatever its size, whole or not at all");
  const auto options = std::make_shared<CloneOptions>();
  command->add_option("source", options->source, "the file; its bytes of now")->required();
  command->add_option("target", options->target, "the name of the clone, or a directory; on the same mount")
      ->required();
  command->add_flag("-f,--force", options->force, "replace what has that name");
  command->callback([&context, options] {
    context.does([&context, options] { return run_clone(*options, context.output); });
  });
}

void add_diff(CLI::App& app, Context& context) {
  CLI::App* const command = app.add_subcommand(
      "diff", "What differs between two directories or files, as between a snapshot and now");
  const auto options = std::make_shared<DiffOptions>();
  command->add_option("before", options->before, "a directory or file: MOUNT/.snapshots/NAME/PATH")
      ->required();
  command->add_option("after", options->after, "another one: that of now, or of another snapshot")
      ->required();
  command->add_flag("--content", options->content,
                    "read files of one size to see whether their bytes differ; else their times tell");
  command->callback([&context, options] {
    context.action = [&context, options] { return run_diff(*options, context.output); };
  });
}

void add_restore(CLI::App& app, Administration& administration) {
  CLI::App* const command = app.add_subcommand(
      "restore", "Makes a file, or a directory with all that is in it, as it was in a snapshot");
  const auto options = std::make_shared<RestoreOptions>();
  command
      ->add_option("snapshot_path", options->snapshot,
                   "in a snapshot, on a mount: MOUNT/.snapshots/NAME/PATH")
      ->required();
  command->add_option("destination", options->destination,
                      "what becomes as that is (default: what it is a snapshot of)");
  command->add_flag("-n,--dry-run", options->dry_run, "change nothing: show what differs, as diff does");
  command->add_flag("--delete", options->remove_new, "remove what the snapshot does not have");
  command->add_flag("--content", options->content,
                    "read files of one size and time, and restore those whose bytes differ");
  command->callback([&administration, options] {
    administration.context.action = [&administration, options] {
      options->yes = administration.yes;
      return run_restore(*options, administration.prompter, administration.output());
    };
  });
}

void add_run(CLI::App& app, Context& context) {
  CLI::App* const command = app.add_subcommand(
      "run", "A program that knows nothing of pnfsrdma, whose reads and overwrites go past the kernel");
  const auto options = std::make_shared<RunOptions>();
  command->add_option("--library", options->library,
                      "libpnfsrdma-preload.so, if it is not the installed one");
  command->add_flag("--statistics", options->statistics,
                    "say on standard error, when it ends, what went which way and why");
  command->add_flag("--kernel-reads", options->kernel_reads,
                    "read by the kernel, which keeps what it has read, but where it is opened with O_DIRECT");
  command
      ->add_option("program", options->words, "the program and its arguments; options stand in front of it")
      ->required();
  command->callback([&context, options] {
    context.action = [&context, options] { return run_program(*options, context.output); };
  });
}

// Of the server's console too, when one is named.
Outcome<ExitCode> doctor(const DoctorOptions& wanted, const ApiOptions& api, Output& output) {
  DoctorOptions options = wanted;
  if (api.server.empty() && environment("PNFSRDMA_SERVER").empty())
    return run_doctor(SystemHost(), options, output);
  TRY_ASSIGN(ApiClient client, ApiClient::make(api));
  options.console = &client;
  return run_doctor(SystemHost(), options, output);
}

void add_doctor(CLI::App& app, Administration& administration) {
  CLI::App* const command =
      app.add_subcommand("doctor", "What is wrong on this host, and the command that fixes it");
  const auto options = std::make_shared<DoctorOptions>();
  command->add_option("--mds", options->server,
                      "an MDS to look for: HOST or HOST:PORT; --server asks its console");
  command->callback([&administration, options] {
    administration.context.action = [&administration, options] {
      const auto code = doctor(*options, administration.api, administration.output());
      return code ? *code : administration.output().complain(code.error());
    };
  });
}

}  // namespace

void add_host_commands(CLI::App& app, Administration& administration) {
  add_stat(app, administration.context);
  add_doctor(app, administration);
  add_clone(app, administration.context);
  add_diff(app, administration.context);
  add_restore(app, administration);
  add_run(app, administration.context);
}

}  // namespace pnfsrdma::cli
