// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <unordered_map>
#include <vector>

#include "server/mds/meta/inode.h"
#include "server/mds/meta/key_value.h"

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
  std::vector<InodeId> all() const;

  // Part of the batch that gives or takes the memory; enter() or leave() follows when it is committed.
  void put_on_record(Batch& batch, InodeId inode) const;
  void take_off_record(Batch& batch, InodeId inode) const;
  void enter(InodeId inode, bool on_record);
  void leave(InodeId inode);

  static constexpr size_t kAskedAtOnce = 64;
  // nullptr: every file.
  using Filter = std::function<bool(InodeId)>;
  static constexpr size_t kFilteredAtOnce = 4096;
  // Of those that nobody is being asked for, those that were not for the longest time, but for one. asked()
  // follows for each, whether it is still here or not. A filter sees the first kFilteredAtOnce.
  std::vector<InodeId> ask(InodeId except, const Filter& which = nullptr);
  void asked(InodeId inode);

 private:
  struct File {
    bool on_record = false;
    uint64_t turn = 0;  // its place in the line; 0: it is being asked for
  };

  std::unordered_map<InodeId, File> files_;
  std::map<uint64_t, InodeId> line_;  // by turn
  uint64_t next_turn_ = 1;
};

}  // namespace pnfsrdma::mds
