// SPDX-License-Identifier: Apache-2.0
#include "fuse-client/directory_names.h"

#include "shared/nfs4/snapshot_list.h"

namespace pnfsrdma::fuse_client {

void DirectoryNames::absent(std::string_view name, uint64_t change) {
  if (change < change_) return;  // overtaken
  if (change > change_) forget();
  change_ = change;
  has_not(name);
}

void DirectoryNames::found(std::string_view name, uint64_t change) {
  if (change < change_) return;  // overtaken
  if (change > change_) forget();
  change_ = change;
  has(name);
  insert(found_, name, kFoundMax);
}

void DirectoryNames::complete(const std::unordered_set<std::string>& names, uint64_t change) {
  if (change < change_ || names.size() > kPresentMax) return;
  Names found = change == change_ ? std::move(found_) : Names();
  forget();
  change_ = change;
  found_ = std::move(found);
  complete_ = true;
  present_.insert(names.begin(), names.end());
}

void DirectoryNames::added(std::string_view name, const nfs4::ChangeInfo& change) {
  (void)follow(change);
  has(name);
}

void DirectoryNames::removed(std::string_view name, const nfs4::ChangeInfo& change) {
  if (follow(change)) has_not(name);
}

void DirectoryNames::renamed(std::string_view from, std::string_view to, const nfs4::ChangeInfo& change) {
  // Two names of one file: rename(2) leaves both.
  const bool follows = follow(change);
  if (change.before != change.after) erase(found_, to);
  if (follows && change.before != change.after) has_not(from);
  has(to);
}

void DirectoryNames::exchanged(const std::vector<std::string_view>& names, const nfs4::ChangeInfo& change) {
  (void)follow(change);
  for (const std::string_view name : names) {
    erase(found_, name);
    has(name);
  }
}

void DirectoryNames::forget() {
  complete_ = false;
  absent_.clear();
  found_.clear();
  present_.clear();
}

bool DirectoryNames::lacks(std::string_view name, uint64_t change) const {
  // The one that no listing shows, and that comes with the first snapshot.
  if (change != change_ || name == nfs4::kSnapshotListName) return false;
  return complete_ ? !present_.contains(name) : absent_.contains(name);
}

bool DirectoryNames::has_found(std::string_view name, uint64_t change) const {
  return change == change_ && found_.contains(name);
}

size_t DirectoryNames::memory() const {
  constexpr size_t kEach = 80;  // the string, its node, its bucket; most are short
  return (absent_.size() + found_.size() + present_.size()) * kEach;
}

bool DirectoryNames::follow(const nfs4::ChangeInfo& change) {
  const bool follows = change.atomic && change.before == change_;
  if (!follows) forget();
  // An answer that another one has overtaken is from before what is known next.
  if (follows || change.after > change_) change_ = change.after;
  return follows;
}

void DirectoryNames::has(std::string_view name) {
  erase(absent_, name);
  if (!complete_) return;
  if (present_.size() >= kPresentMax) return forget();
  present_.emplace(name);
}

void DirectoryNames::has_not(std::string_view name) {
  erase(found_, name);
  if (complete_) return erase(present_, name);
  insert(absent_, name, kAbsentMax);
}

void DirectoryNames::insert(Names& names, std::string_view name, size_t most) {
  if (names.size() >= most && !names.contains(name)) names.erase(names.begin());
  names.emplace(name);
}

void DirectoryNames::erase(Names& names, std::string_view name) {
  if (const auto found = names.find(name); found != names.end()) names.erase(found);
}

}  // namespace pnfsrdma::fuse_client
