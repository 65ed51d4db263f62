// SPDX-License-Identifier: Apache-2.0
#include "cli/tree/diff_command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/output/text.h"
#include "cli/tree/paths_seen.h"
#include "cli/tree/tree_diff.h"

namespace pnfsrdma::cli {
namespace {

// One of the two: a tree, or a name in one.
struct Side {
  Tree tree;
  std::string name;  // "": the tree

  static Outcome<Side> open(const std::string& path) {
    std::error_code error;
    const std::filesystem::path real = std::filesystem::canonical(path, error);
    if (error) return refuse(kTrouble, path + ": " + std::strerror(error.value()));
    const bool is_tree = std::filesystem::is_directory(real, error);
    auto tree = Tree::open(is_tree ? real.string() : real.parent_path().string());
    if (!tree) return refuse(kTrouble, tree.error().to_string());
    return Side{*std::move(tree), is_tree ? "" : real.filename().string()};
  }
};

std::string line_of(const Difference& difference) {
  std::string line = fmt::format("{:<10}  {}", word_of(difference.kind), printable(difference.path));
  if (!difference.to.empty()) line += " -> " + printable(difference.to);
  if (difference.aspects.any()) line += fmt::format("  ({})", fmt::join(difference.aspects.words(), ", "));
  return line;
}

nlohmann::json json_of(const Difference& difference) {
  nlohmann::json one = {{"kind", word_of(difference.kind)}, {"path", difference.path}};
  if (!difference.to.empty()) one["to"] = difference.to;
  if (difference.aspects.any()) one["what"] = difference.aspects.words();
  return one;
}

void show(const TreeDiff& diff, Output& output) {
  if (!output.json) {
    for (const Difference& each : diff.differences()) output.line(line_of(each));
    for (const Problem& each : diff.problems())
      (void)output.complain({kTrouble, each.path + ": " + each.error, {}, {}});
    return;
  }
  nlohmann::json differences = nlohmann::json::array();
  for (const Difference& each : diff.differences()) differences.push_back(json_of(each));
  nlohmann::json problems = nlohmann::json::array();
  for (const Problem& each : diff.problems())
    problems.push_back({{"path", each.path}, {"error", each.error}});
  output.value({{"differences", differences}, {"problems", problems}});
}

}  // namespace

ExitCode run_diff(const DiffOptions& options, Output& output) {
  const auto before = Side::open(options.before);
  if (!before) return output.complain(before.error());
  const auto after = Side::open(options.after);
  if (!after) return output.complain(after.error());
  if (before->name.empty() != after->name.empty()) {
    return output.complain({kTrouble,
                            "one of them is a directory, the other one is not",
                            options.before + " and " + options.after,
                            {}});
  }
  std::optional<PathsSeen> progress(output);
  TreeDiff diff(before->tree, after->tree, options.content,
                [&progress](const std::string& path) { progress->saw(path); });
  if (before->name.empty()) {
    diff.run();
  } else {
    diff.run_of(before->name, after->name);
  }
  progress.reset();
  show(diff, output);
  if (!diff.problems().empty()) return kTrouble;
  return diff.differences().empty() ? ExitCode::kDone : kDifferent;
}

}  // namespace pnfsrdma::cli
