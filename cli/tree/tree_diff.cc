// SPDX-License-Identifier: Apache-2.0
#include "cli/tree/tree_diff.h"

#include <algorithm>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace pnfsrdma::cli {
namespace {

std::string shown(const std::string& path, const Status& status) {
  return status.is_directory() ? path + '/' : path;
}

}  // namespace

const char* word_of(Difference::Kind kind) {
  switch (kind) {
    case Difference::Kind::kAdded:
      return "added";
    case Difference::Kind::kRemoved:
      return "removed";
    case Difference::Kind::kModified:
      return "modified";
    case Difference::Kind::kAttributes:
      return "attributes";
    case Difference::Kind::kRenamed:
      return "renamed";
  }
  return "";
}

TreeDiff::TreeDiff(const Tree& before, const Tree& after, bool content, Progress progress)
    : before_(before), after_(after), content_(content), progress_(std::move(progress)) {}

void TreeDiff::run() {
  left_.emplace_back();
  while (!left_.empty()) {
    const std::string path = std::exchange(left_.back(), {});
    left_.pop_back();
    compare_directories(path);
  }
  if (before_.root().device == after_.root().device) match_by_inode();
  match_by_name();
  for (const auto& [path, status] : gone_)
    differences_.push_back(
        {.kind = Difference::Kind::kRemoved, .path = shown(path, status), .to = {}, .aspects = {}});
  for (const auto& [path, status] : come_)
    differences_.push_back(
        {.kind = Difference::Kind::kAdded, .path = shown(path, status), .to = {}, .aspects = {}});
  std::ranges::sort(differences_, {},
                    [](const Difference& each) { return std::tie(each.path, each.to, each.kind); });
}

void TreeDiff::run_of(const std::string& old_name, const std::string& new_name) {
  const auto before = before_.directory("");
  const auto after = after_.directory("");
  if (!before || !after) return trouble("", !before ? before.error() : after.error());
  const auto old_entry = before_.find_now(before->get(), old_name);
  const auto new_entry = after_.find_now(after->get(), new_name);
  if (!old_entry || !new_entry) return trouble(new_name, !old_entry ? old_entry.error() : new_entry.error());
  (void)compare_names(*old_entry, *new_entry, new_name);
}

void TreeDiff::trouble(const std::string& path, const Error& error) {
  problems_.push_back({path.empty() ? "." : path, error.to_string()});
}

void TreeDiff::compare_directories(const std::string& path) {
  progress_(path);
  const auto before = before_.directory(path);
  if (!before) return trouble(path, before.error());
  const auto after = after_.directory(path);
  if (!after) return trouble(path, after.error());
  const auto old_names = Tree::names(before->get());
  if (!old_names) return trouble(path, old_names.error());
  const auto new_names = Tree::names(after->get());
  if (!new_names) return trouble(path, new_names.error());

  bool other_names = false;
  auto old_name = old_names->begin();
  auto new_name = new_names->begin();
  while (old_name != old_names->end() || new_name != new_names->end()) {
    const bool is_old =
        new_name == new_names->end() || (old_name != old_names->end() && *old_name <= *new_name);
    const bool is_new =
        old_name == old_names->end() || (new_name != new_names->end() && *new_name <= *old_name);
    const std::string& name = is_old ? *old_name : *new_name;
    const std::string here = joined(path, name);
    const auto old_entry = is_old ? before_.find(before->get(), name) : Result<Entry>(Entry());
    const auto new_entry = is_new ? after_.find(after->get(), name) : Result<Entry>(Entry());
    if (!old_entry || !new_entry) {
      trouble(here, !old_entry ? old_entry.error() : new_entry.error());
    } else if (is_old && is_new) {
      other_names |= !compare_names(*old_entry, *new_entry, here);
    } else {
      other_names = true;
      if (is_old) expand(before_, here, old_entry->status, gone_);
      if (is_new) expand(after_, here, new_entry->status, come_);
    }
    if (is_old) ++old_name;
    if (is_new) ++new_name;
  }

  const auto old_own = before_.find(before->get(), ".");
  const auto new_own = after_.find(after->get(), ".");
  if (!old_own || !new_own) return trouble(path, !old_own ? old_own.error() : new_own.error());
  auto aspects = pnfsrdma::cli::differences(*old_own, *new_own, content_);
  if (!aspects) return trouble(path, aspects.error());
  // Its names are reported, and they change its time.
  if (other_names) aspects->drop(Aspect::kTimes);
  report(path.empty() ? "." : path, new_own->status, *aspects);
}

// True: the name leads to the same thing, whatever has happened to that.
bool TreeDiff::compare_names(const Entry& before, const Entry& after, const std::string& path) {
  if (before.status.is_directory() && after.status.is_directory()) {
    left_.push_back(path);
    return before.status.is_same_as(after.status);
  }
  auto aspects = pnfsrdma::cli::differences(before, after, content_);
  if (!aspects) {
    trouble(path, aspects.error());
    return true;
  }
  if (!linked_.match(before.status, after.status)) aspects->add(Aspect::kLinks);
  report(path, after.status, *aspects);
  if (aspects->has(Aspect::kType)) {
    Lonely* const side = before.status.is_directory() ? &gone_ : &come_;
    const Entry& directory = before.status.is_directory() ? before : after;
    if (directory.status.is_directory()) {
      expand(side == &gone_ ? before_ : after_, path, directory.status, *side);
      side->erase(path);
    }
  }
  return before.status.is_same_as(after.status);
}

void TreeDiff::report(const std::string& path, const Status& after, const Aspects& aspects) {
  if (!aspects.any()) return;
  const auto kind = aspects.are_of_content() ? Difference::Kind::kModified : Difference::Kind::kAttributes;
  differences_.push_back({.kind = kind, .path = shown(path, after), .to = {}, .aspects = aspects});
}

void TreeDiff::expand(const Tree& tree, const std::string& path, const Status& status, Lonely& lonely) {
  lonely.emplace(path, status);
  std::vector<std::string> directories;
  if (status.is_directory()) directories.push_back(path);
  while (!directories.empty()) {
    const std::string here = std::exchange(directories.back(), {});
    directories.pop_back();
    progress_(here);
    const auto directory = tree.directory(here);
    if (!directory) {
      trouble(here, directory.error());
      continue;
    }
    const auto names = Tree::names(directory->get());
    if (!names) {
      trouble(here, names.error());
      continue;
    }
    for (const std::string& name : *names) {
      const std::string below = joined(here, name);
      const auto entry = tree.find(directory->get(), name);
      if (!entry) {
        trouble(below, entry.error());
        continue;
      }
      lonely.emplace(below, entry->status);
      if (entry->status.is_directory()) directories.push_back(below);
    }
  }
}

// --- what has another name ---

bool TreeDiff::is_renamed_with_parent(const std::string& old_path, const std::string& new_path) const {
  const auto parent = renamed_.find(directory_of(old_path));
  return parent != renamed_.end() && parent->second == directory_of(new_path) &&
         name_of(old_path) == name_of(new_path);
}

void TreeDiff::match_by_inode() {
  std::unordered_multimap<uint64_t, std::string> places;
  for (const auto& [path, status] : come_) places.emplace(status.inode, path);
  std::vector<std::string> old_paths;
  for (const auto& [path, status] : gone_) old_paths.push_back(path);
  for (const std::string& old_path : old_paths) {
    const Status& status = gone_.at(old_path);
    auto [first, last] = places.equal_range(status.inode);
    auto best = last;
    for (; first != last; ++first) {
      const auto candidate = come_.find(first->second);
      if (candidate == come_.end() || candidate->second.type() != status.type()) continue;
      if (best == last || is_renamed_with_parent(old_path, first->second)) best = first;
    }
    if (best == last) continue;
    const std::string new_path = best->second;
    if (!is_renamed_with_parent(old_path, new_path))
      differences_.push_back({.kind = Difference::Kind::kRenamed,
                              .path = shown(old_path, status),
                              .to = shown(new_path, status),
                              .aspects = {}});
    pair(old_path, new_path);
  }
}

// What a renamed directory has by the same name as before, as another inode.
void TreeDiff::match_by_name() {
  std::vector<std::string> old_paths;
  for (const auto& [path, status] : gone_) old_paths.push_back(path);
  for (const std::string& old_path : old_paths) {
    const auto parent = renamed_.find(directory_of(old_path));
    if (parent == renamed_.end()) continue;
    const std::string new_path = joined(parent->second, name_of(old_path));
    const auto other = come_.find(new_path);
    if (other != come_.end() && other->second.type() == gone_.at(old_path).type()) pair(old_path, new_path);
  }
}

void TreeDiff::pair(const std::string& old_path, const std::string& new_path) {
  compare_renamed(old_path, new_path);
  if (gone_.at(old_path).is_directory()) renamed_.emplace(old_path, new_path);
  gone_.erase(old_path);
  come_.erase(new_path);
}

void TreeDiff::compare_renamed(const std::string& old_path, const std::string& new_path) {
  const auto before = before_.directory(directory_of(old_path));
  const auto after = after_.directory(directory_of(new_path));
  if (!before || !after) return trouble(new_path, !before ? before.error() : after.error());
  const Entry old_entry{before->get(), name_of(old_path), gone_.at(old_path)};
  const Entry new_entry{after->get(), name_of(new_path), come_.at(new_path)};
  auto aspects = pnfsrdma::cli::differences(old_entry, new_entry, content_);
  if (!aspects) return trouble(new_path, aspects.error());
  // A directory's time is that of its names.
  if (old_entry.status.is_directory()) aspects->drop(Aspect::kTimes);
  if (!linked_.match(old_entry.status, new_entry.status)) aspects->add(Aspect::kLinks);
  report(new_path, new_entry.status, *aspects);
}

}  // namespace pnfsrdma::cli
