// SPDX-License-Identifier: Apache-2.0
#include "server/mds/admin/quota_tree_walk.h"

#include <algorithm>

#include "server/mds/meta/read_then.h"
#include "shared/base/log.h"

namespace pnfsrdma::mds {
namespace {

using nfs4::Status;

// The store is full, or makes a snapshot.
constexpr Milliseconds kMarkAgain{1000};

// It was removed meanwhile (a directory is so only when it is empty), or cannot be read, as the log says.
bool is_gone(Status status) {
  return status == Status::kStale || status == Status::kNoEnt || status == Status::kIo;
}

}  // namespace

void QuotaTreeWalk::start() {
  if (tree_.value != 0) return;
  const auto& trees = names_.quotas().trees().all();
  const auto found = std::ranges::find_if(trees, [](const auto& one) { return !one.second.complete; });
  if (found == trees.end()) return;
  tree_ = found->first;
  way_ = {{.directory = found->second.root}};
  next();
}

void QuotaTreeWalk::next() {
  loop_.post(lifetime_.guard([this] {
    read_then(
        names_.store(), lifetime_.token(), [this] { return look(); },
        [this](const Outcome<Look>& look) { mark(look); });
  }));
}

// Only reads: the entries, their inodes, and what will be charged.
Outcome<QuotaTreeWalk::Look> QuotaTreeWalk::look() {
  const Place& place = way_.back();
  TRY_ASSIGN(const InodePointer directory, names_.get(place.directory));
  TRY_ASSIGN(DirectoryPage page, names_.read_directory(place.directory, place.cookie, kEntriesPerTurn));
  for (const DirectoryEntry& entry : page.entries) {
    if (const auto inode = names_.get(entry.inode)) names_.quotas().bring(**inode);
  }
  return Look{.page = std::move(page), .next_cookie = directory->next_cookie};
}

void QuotaTreeWalk::mark(const Outcome<Look>& look) {
  const QuotaTree* const tree = names_.quotas().trees().find(tree_);
  if (tree == nullptr) return finish();
  if (!look && !is_gone(look.error())) return again();
  Place& place = way_.back();
  if (look && place.end == 0) place.end = look->next_cookie;
  const bool over = !look || look->page.entries.empty() || look->page.entries.front().cookie >= place.end;
  if (over) {
    way_.pop_back();
  } else if (!mark_entries(look->page)) {
    return again();
  }
  if (!way_.empty()) return next();
  if (const auto completed = names_.complete_tree(tree_); !completed) {
    way_ = {{.directory = tree->root, .cookie = UINT64_MAX}};  // nothing is left but that
    return again();
  }
  log_info("quotas", "quota-tree-counted tree={} path={}", tree_.value, tree->path);
  finish();
}

// Up to a directory, which comes before what is behind it. False: an entry could not be marked just now.
bool QuotaTreeWalk::mark_entries(const DirectoryPage& page) {
  for (const DirectoryEntry& entry : page.entries) {
    const auto placed = names_.place_in_tree(entry.inode, tree_);
    if (!placed && !is_gone(placed.error())) return false;
    way_.back().cookie = entry.cookie;
    if (placed && *placed && entry.type == FileType::kDirectory) {
      way_.push_back({.directory = entry.inode});
      return true;
    }
  }
  return true;
}

void QuotaTreeWalk::finish() {
  tree_ = {};
  way_.clear();
  start();
}

void QuotaTreeWalk::again() {
  loop_.after(kMarkAgain, lifetime_.guard([this] { next(); }));
}

}  // namespace pnfsrdma::mds
