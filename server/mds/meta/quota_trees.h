// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "server/mds/meta/inode.h"
#include "server/mds/meta/key_value.h"
#include "shared/base/result.h"

namespace pnfsrdma::mds {

// A directory whose content is counted together. Each inode below it has its number; what is made there gets it from
// its directory, and nothing that has another one comes or goes by rename(2) or link(2). While a tree is being marked,
// no directory of the server changes its parent: none escapes, and none comes in unseen.
struct QuotaTree {
  TreeNumber number;
  InodeId root = kNoInode;
  std::string path;       // for people: where it was when it became one
  bool complete = false;  // all of what was there has the number: its limits hold

  bool operator==(const QuotaTree&) const = default;
};

// Which trees there are. All in memory, and on record. A tree goes with its directory. None is in another one.
// Control loop only.
class QuotaTrees {
 public:
  // Blocks.
  static Result<QuotaTrees> open(KeyValueStore& store);
  static constexpr size_t kTreesMax = 1024;

  const std::map<TreeNumber, QuotaTree>& all() const { return all_; }
  // nullptr: there is none.
  const QuotaTree* find(TreeNumber number) const;
  const QuotaTree* of_root(InodeId directory) const;
  // Of an inode whose tree has gone: none.
  TreeNumber tree_of(const Inode& inode) const {
    return inode.tree.value != 0 && all_.contains(inode.tree) ? inode.tree : TreeNumber{};
  }
  // Not all of what is in some tree has its number yet.
  bool marking() const { return incomplete_ > 0; }
  bool is_root(const Inode& inode) const {
    const QuotaTree* const tree = find(inode.tree);
    return tree != nullptr && tree->root == inode.id;
  }

  // Parts of a batch; the caller commits it, and tells with enter() and leave().
  // EMFILE: there are kTreesMax.
  Result<QuotaTree> add(Batch& batch, InodeId root, const std::string& path) const;
  void put(Batch& batch, const QuotaTree& tree) const;
  // With its limits and what was counted of it.
  void erase(Batch& batch, TreeNumber number) const;
  void enter(const QuotaTree& tree);
  void leave(TreeNumber number);

 private:
  explicit QuotaTrees(KeyValueStore& store) : store_(&store) {}

  KeyValueStore* store_;
  void count_incomplete();

  std::map<TreeNumber, QuotaTree> all_;
  size_t incomplete_ = 0;
  uint64_t next_ = 1;
};

}  // namespace pnfsrdma::mds
