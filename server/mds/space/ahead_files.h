// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <unordered_map>
#include <vector>

#include "server/mds/meta/inode.h"
#include "server/mds/meta/key_value.h"
#include "server/mds/meta/quota.h"

namespace pnfsrdma::mds {

// Files that may have memory behind the end of what they keep: it was given ahead of their growth, or its
// writer has not committed a size yet. What is ahead of growth is on record, so that a crash does not hide
// it; the rest has its tail record. Control loop only.
class AheadFiles {
 public:
  // Knows the files that are on record.
  explicit AheadFiles(KeyValueStore& store);

  bool contains(InodeId inode) const { return files_.contains(inode); }
  size_t size() const { return files_.size(); }
  // In order, the first `most` from this one on.
  std::vector<InodeId> page(InodeId from, size_t most) const;

  // Part of the batch that gives or takes the memory; enter() or leave() follows when it is committed.
  void put_on_record(Batch& batch, InodeId inode) const;
  void take_off_record(Batch& batch, InodeId inode) const;
  // `owners`: those that it counts for.
  void enter(InodeId inode, bool on_record, const std::vector<QuotaId>& owners = {});
  void leave(InodeId inode);

  static constexpr size_t kAskedAtOnce = 64;
  // Of those that nobody is being asked for, those that were not for the longest time, but for one. asked()
  // follows for each, whether it is still here or not.
  std::vector<InodeId> ask(InodeId except);
  // The same of those that count for one, in turns: behind those that were asked for before.
  std::vector<InodeId> ask(InodeId except, const QuotaId& owner);
  // How many count for it, but for one; those that somebody is being asked for, too.
  size_t count(const QuotaId& owner, InodeId except) const;
  void asked(InodeId inode);

 private:
  struct File {
    bool on_record = false;
    uint64_t turn = 0;  // its place in the line; 0: it is being asked for
    std::vector<QuotaId> owners;
  };

  static constexpr size_t kLookedAtOnce = 1024;
  void disown(InodeId inode, const File& file);

  std::map<InodeId, File> files_;
  std::map<uint64_t, InodeId> line_;  // by turn
  struct Owned {
    std::set<InodeId> files;
    InodeId next = kNoInode;  // the first to be looked at
  };
  std::unordered_map<QuotaId, Owned, QuotaHash> by_owner_;
  uint64_t next_turn_ = 1;
};

}  // namespace pnfsrdma::mds
