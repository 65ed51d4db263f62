// SPDX-License-Identifier: Apache-2.0
#include "cli/tree/restore_command.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/output/text.h"
#include "cli/output/units.h"
#include "cli/tree/diff_command.h"
#include "cli/tree/paths_seen.h"
#include "cli/tree/restorer.h"
#include "cli/tree/snapshot_path.h"

namespace pnfsrdma::cli {
namespace {

std::atomic<bool> interrupted = false;

// The first one ends the work between two files, the second one at once.
void end_on_signals() {
  struct sigaction action{};
  action.sa_handler = [](int) { interrupted = true; };
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction before{};
    if (sigaction(number, nullptr, &before) == 0 && before.sa_handler != SIG_IGN)
      (void)sigaction(number, &action, nullptr);
  }
}

std::unexpected<Failure> refuse_path(const std::string& path, int error) {
  return refuse(kTrouble, path + ": " + std::strerror(error));
}

// What goes where, after all that can be known before anything is changed.
struct Plan {
  std::string source;
  std::string target;
  bool is_tree = false;
  bool target_exists = false;
};

Outcome<Plan> plan_of(const RestoreOptions& options) {
  TRY_ASSIGN(const SnapshotPath snapshot, snapshot_path(options.snapshot));
  Plan plan{.source = snapshot.path, .target = snapshot.living};
  if (!options.destination.empty()) {
    TRY_ASSIGN(plan.target, absolute_path(options.destination));
  }
  const auto source = status_of(plan.source);
  if (!source) return refuse_path(plan.source, source.error().number());
  plan.is_tree = source->is_directory();
  if (is_in_a_snapshot(plan.target))
    return refuse(kTrouble, plan.target + " is in a snapshot, which never changes");

  const auto target = status_of(plan.target);
  if (!target && target.error().number() != ENOENT) return refuse_path(plan.target, target.error().number());
  plan.target_exists = target.has_value();
  if (target && target->is_directory() != plan.is_tree) {
    return refuse(
        kTrouble,
        fmt::format("{} {} a directory, {} {}", plan.target, target->is_directory() ? "is" : "is not",
                    plan.source, plan.is_tree ? "is" : "is not"),
        {}, "give it another name, or name another destination");
  }
  const std::string parent = plan.target.substr(0, std::max(plan.target.find_last_of('/'), size_t{1}));
  const auto place = target ? target : status_of(parent);
  if (!place) {
    return refuse(kTrouble, parent + ": " + std::strerror(place.error().number()), {},
                  "restore a directory above it, or make it");
  }
  if (place->device != source->device)
    return refuse(kTrouble, plan.target + " and " + plan.source + " are not on the same mount");
  return plan;
}

Outcome<Tree> open_tree(const std::string& path) {
  auto tree = Tree::open(path);
  if (!tree) return refuse(kTrouble, tree.error().to_string());
  return *std::move(tree);
}

// Else there would be an empty directory in its place.
Outcome<> check_readable(const Tree& tree, const std::string& path) {
  const auto top = tree.directory("");
  if (!top) return refuse_path(path, top.error().number());
  if (const auto names = Tree::names(top->get()); !names) return refuse_path(path, names.error().number());
  return {};
}

Outcome<Restored> restore(const Plan& plan, const RestoreOptions& options, Output& output) {
  const size_t source_name = plan.source.find_last_of('/');
  const size_t target_name = plan.target.find_last_of('/');
  // Never by a name alone: a directory above may have become a link since the snapshot.
  const std::string above = plan.target.substr(0, std::max(target_name, size_t{1}));
  TRY_ASSIGN(const Tree source, open_tree(plan.is_tree ? plan.source : plan.source.substr(0, source_name)));
  if (plan.is_tree && !plan.target_exists) {
    TRY(check_readable(source, plan.source));
    TRY_ASSIGN(const Tree parent, open_tree(above));
    const auto directory = parent.directory("");
    if (!directory) return refuse_path(above, directory.error().number());
    if (mkdirat(directory->get(), plan.target.substr(target_name + 1).c_str(), 0700) != 0)
      return refuse_path(plan.target, errno);
  }
  TRY_ASSIGN(const Tree target, open_tree(plan.is_tree ? plan.target : above));
  // Somebody may have put another one in the place of what was looked at.
  if (target.root().device != source.root().device || target.root().snapshot != 0)
    return refuse(kTrouble, plan.target + " was replaced meanwhile");
  PathsSeen progress(output);
  Restorer restorer(source, target, {.remove_new = options.remove_new, .content = options.content},
                    interrupted, [&progress](const std::string& path) { progress.saw(path); });
  if (plan.is_tree) {
    restorer.run();
  } else {
    restorer.run_of(plan.source.substr(source_name + 1), plan.target.substr(target_name + 1));
  }
  return restorer.restored();
}

// "12 files restored"; nothing of what there is none of.
void add_count(std::string& text, uint64_t count, const char* one, const char* many) {
  if (count != 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, count == 1 ? one : many);
}

std::string summary_of(const Restored& done) {
  std::string text;
  add_count(text, done.files, "file restored", "files restored");
  add_count(text, done.links, "link restored", "links restored");
  add_count(text, done.directories, "directory made", "directories made");
  add_count(text, done.attributes, "file or directory given its attributes",
            "files and directories given their attributes");
  add_count(text, done.removed, "removed", "removed");
  add_count(text, done.kept, "new one kept (--delete removes it)", "new ones kept (--delete removes them)");
  add_count(text, done.problems.size(), "not restored", "not restored");
  if (text.empty()) text = "nothing to restore";
  if (done.bytes_shared != 0)
    text += fmt::format("; {} shared with the snapshot", bytes_text(static_cast<double>(done.bytes_shared)));
  if (done.bytes_copied != 0)
    text += fmt::format("; {} copied", bytes_text(static_cast<double>(done.bytes_copied)));
  return text;
}

Failure over_quota_failure(const OverQuota& first, const std::string& top) {
  return {
      kDifferent,
      fmt::format("a quota is used up: of user {}, of group {} or of the quota tree that {} is in",
                  first.user, first.group, first.path),
      "What is restored stays. A file that is replaced counts twice until its new content has its name.",
      fmt::format(
          "pnfsrdma quota mine {}; remove something or raise the quota, then the same command goes on", top)};
}

nlohmann::json json_of(const std::optional<OverQuota>& over) {
  if (!over) return nullptr;
  return {{"path", over->path}, {"user", over->user}, {"group", over->group}};
}

void show(const Plan& plan, const Restored& done, Output& output) {
  if (!output.json) {
    for (const Problem& each : done.problems)
      (void)output.complain({kDifferent, each.path + ": " + each.error, {}, {}});
    if (done.over_quota) (void)output.complain(over_quota_failure(*done.over_quota, plan.target));
    return output.line(fmt::format("{}: {}", printable(plan.target), summary_of(done)));
  }
  nlohmann::json problems = nlohmann::json::array();
  for (const Problem& each : done.problems) problems.push_back({{"path", each.path}, {"error", each.error}});
  output.value({{"snapshot", plan.source},
                {"destination", plan.target},
                {"files", done.files},
                {"links", done.links},
                {"directories", done.directories},
                {"attributes", done.attributes},
                {"removed", done.removed},
                {"kept", done.kept},
                {"bytes_shared", done.bytes_shared},
                {"bytes_copied", done.bytes_copied},
                {"interrupted", interrupted.load()},
                {"over_quota", json_of(done.over_quota)},
                {"problems", problems}});
}

}  // namespace

ExitCode run_restore(const RestoreOptions& options, Prompter& prompter, Output& output) {
  const auto plan = plan_of(options);
  if (!plan) return output.complain(plan.error());
  if (options.dry_run) {
    if (plan->target_exists)
      return run_diff({.before = plan->source, .after = plan->target, .content = options.content}, output);
    return output.complain(
        {kDifferent, plan->target + " does not exist: all of it would be restored", {}, {}});
  }
  if (plan->target_exists) {
    const std::string what = options.remove_new ? "What was made or changed there since the snapshot is lost."
                                                : "What was changed there since the snapshot is lost.";
    const auto sure = confirm(prompter, plan->target + " becomes as " + plan->source + " is. " + what,
                              name_of(plan->target), options.yes);
    if (!sure) {
      Failure refused = sure.error();
      refused.code = kTrouble;
      return output.complain(refused);
    }
  }
  end_on_signals();
  const auto done = restore(*plan, options, output);
  if (!done) return output.complain(done.error());
  show(*plan, *done, output);
  if (interrupted) {
    output.note("interrupted: the same command goes on");
    return ExitCode::kInterrupted;
  }
  return done->problems.empty() ? ExitCode::kDone : kDifferent;
}

}  // namespace pnfsrdma::cli
