// SPDX-License-Identifier: Apache-2.0
// Directories that are counted with all that is in them (quota_trees.h).
#include "server/mds/meta/namespace_change.h"

namespace pnfsrdma::mds {

using nfs4::Status;

// From one directory to another. A tree's own directory may go wherever there is no tree, as its parent is in none.
// What has no number may only not be marked yet: as long as it may be, nobody is told for good.
Outcome<> Namespace::check_tree(const Inode& moved, const Inode& source, const Inode& target) const {
  const QuotaTrees& trees = quotas_.trees();
  if (moved.is_directory() && source.id != target.id && trees.marking())
    return std::unexpected(Status::kDelay);
  const TreeNumber there = trees.tree_of(target);
  const TreeNumber own = trees.tree_of(moved);
  const bool whole = there.value == 0 && trees.is_root(moved);
  if (whole || own == there) return {};
  const QuotaTree* const one = own.value == 0     ? trees.find(there)
                               : there.value == 0 ? trees.find(own)
                                                  : nullptr;
  return std::unexpected(one != nullptr && !one->complete ? Status::kDelay : Status::kXDev);
}

// It is in no tree, and no tree is in it. One that is being made has not marked all that is in it yet.
Outcome<> Namespace::check_apart(InodeId directory) {
  const QuotaTrees& trees = quotas_.trees();
  for (InodeId at = directory;;) {
    if (trees.of_root(at) != nullptr)
      return std::unexpected(at == directory ? Status::kExist : Status::kNotEmpty);
    if (at == kRootInode) break;
    TRY_ASSIGN(const InodePointer inode, get_directory(at));
    at = inode->parent;
  }
  for (const auto& [number, tree] : trees.all()) {
    for (InodeId at = tree.root; at != kRootInode;) {
      TRY_ASSIGN(const InodePointer inode, get_directory(at));
      at = inode->parent;
      if (at == directory) return std::unexpected(Status::kNotEmpty);
    }
  }
  return {};
}

Outcome<> Namespace::check_tree_root(InodeId directory) {
  if (snapshot_of(directory) != 0) return std::unexpected(Status::kRoFs);
  TRY(get_directory(directory));
  TRY(check_apart(directory));
  const bool full = quotas_.trees().all().size() >= QuotaTrees::kTreesMax;
  return full ? Outcome<>(std::unexpected(Status::kMLink)) : Outcome<>();
}

Outcome<QuotaTree> Namespace::begin_tree(InodeId directory, const std::string& path) {
  if (!quotas_.on()) return std::unexpected(Status::kInval);
  if (path.size() > kSymlinkBytesMax) return std::unexpected(Status::kNameTooLong);
  TRY(check_tree_root(directory));
  TRY_ASSIGN(const InodePointer present, get_directory(directory));
  Change change(*this);
  const auto tree = quotas_.trees().add(change.batch(), directory, path);
  if (!tree) return std::unexpected(status_of(tree.error()));
  Inode& root = change.edit(present);
  // It is counted as in the tree from its first change on, when there is a tree.
  root.tree = tree->number;
  quotas_.trees().enter(*tree);
  if (const auto committed = change.commit(); !committed) {
    quotas_.trees().leave(tree->number);
    return std::unexpected(committed.error());
  }
  return *tree;
}

Outcome<bool> Namespace::place_in_tree(InodeId inode, TreeNumber tree) {
  if (quotas_.trees().find(tree) == nullptr) return std::unexpected(Status::kNoEnt);
  TRY_ASSIGN(const InodePointer present, get(inode));
  const TreeNumber in = quotas_.trees().tree_of(*present);
  if (in == tree) return true;
  if (in.value != 0) return false;
  Change change(*this);
  change.edit(present).tree = tree;
  TRY(change.commit(CommitKind::kState));
  return true;
}

Outcome<> Namespace::complete_tree(TreeNumber number) {
  const QuotaTree* const tree = quotas_.trees().find(number);
  if (tree == nullptr) return std::unexpected(Status::kNoEnt);
  QuotaTree complete = *tree;
  complete.complete = true;
  Batch batch;
  quotas_.trees().put(batch, complete);
  if (const auto committed = store_.commit(batch, CommitKind::kNamespace); !committed)
    return std::unexpected(status_of(committed.error()));
  quotas_.trees().enter(complete);
  return {};
}

Outcome<> Namespace::end_tree(TreeNumber number) {
  if (quotas_.trees().find(number) == nullptr) return std::unexpected(Status::kNoEnt);
  Batch batch;
  quotas_.trees().erase(batch, number);
  batch.mark_makes_room();
  if (const auto committed = store_.commit(batch, CommitKind::kNamespace); !committed)
    return std::unexpected(status_of(committed.error()));
  quotas_.forget_tree(number);
  return {};
}

}  // namespace pnfsrdma::mds
