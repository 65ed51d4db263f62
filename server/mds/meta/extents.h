// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "server/mds/meta/inode.h"
#include "server/mds/meta/key_value.h"
#include "server/mds/meta/snapshots.h"
#include "shared/base/result.h"

namespace pnfsrdma::mds {

// The unit of allocation inside a block, bytes. All offsets, addresses and lengths here are multiples of it.
inline constexpr uint64_t kGrainSize = 4096;

// `length` bytes of a file from `file_offset`, kept at logical address `logical` of the brick.
struct Extent {
  uint64_t file_offset = 0;
  uint64_t logical = 0;
  uint64_t length = 0;
  SnapshotNumber born = 0;  // Snapshots::now() when the memory was given to a file

  uint64_t end() const { return file_offset + length; }
  uint64_t logical_end() const { return logical + length; }
  bool operator==(const Extent&) const = default;
};

// A piece of a file without gaps between pieces: data, or a hole (reads as zeros).
struct Mapping {
  uint64_t file_offset = 0;
  uint64_t length = 0;
  std::optional<uint64_t> logical;  // absent: hole
  SnapshotNumber born = 0;          // as of its extent
  bool operator==(const Mapping&) const = default;
};

// Where the bytes of files are. Reads come from the store; changes are made by ExtentChange. Control loop
// only.
class Extents {
 public:
  explicit Extents(KeyValueStore& store) : store_(store) {}

  // Covers [offset, offset + length) exactly, in order, extents cut at its ends; where it has `most` extents, only as
  // far as the last of these.
  Result<std::vector<Mapping>> map(InodeId inode, uint64_t offset, uint64_t length, size_t most = SIZE_MAX);
  // The extents that touch [offset, offset + length), whole, in order; the first `most` of them.
  Result<std::vector<Extent>> overlapping(InodeId inode, uint64_t offset, uint64_t length,
                                          size_t most = SIZE_MAX);
  // The one with the lowest offset, if the file has any.
  Result<std::optional<Extent>> first(InodeId inode);
  Result<std::vector<Extent>> all(InodeId inode) { return overlapping(inode, 0, UINT64_MAX); }

  // Every extent of every file, by inode, then by offset, until the visitor returns false. There may be as many
  // as users like: in the control loop they are visited a page at a time, each from where the last one ended.
  struct Place {
    InodeId inode = 0;
    uint64_t end = 0;  // extents that end below it have been visited
  };
  using Visitor = std::function<bool(InodeId, const Extent&)>;
  Result<> scan(const Place& from, const Visitor& visitor);
  Result<> scan(const Visitor& visitor) { return scan(Place{}, visitor); }

  // "Bytes past the end of file in allocated grains may be non-zero." Set durably before a read-write grant
  // reaches past the end; cleared after the zeroing is persistent. A change takes effect with the batch it is
  // put into.
  static void mark_tail_dirty(Batch& batch, InodeId inode);
  static void mark_tail_clean(Batch& batch, InodeId inode);
  Result<bool> tail_dirty(InodeId inode);
  // In order, from this one on; the first `most` of them.
  Result<std::vector<InodeId>> dirty_tails(InodeId from = 0, size_t most = SIZE_MAX);

 private:
  KeyValueStore& store_;
};

// Changes to one file's extents, made in memory one after the other, then written into a batch that the
// caller commits (with the inode's space_used and size: Namespace::update). Valid until another change to the
// same file is committed: make, use and commit it without suspending in between.
class ExtentChange {
 public:
  ExtentChange(KeyValueStore& store, InodeId inode) : extents_(store), inode_(inode) {}

  // The file must have a hole there (remove first). EEXIST if not, EINVAL for what is not a multiple of
  // kGrainSize, is empty or wraps. Joined with its neighbours of the same birth where file offset and logical
  // address both go on.
  Result<> insert(const Extent& extent);
  // The same for several, in the order of the file: the whole stretch that they reach over must be a hole. For many at
  // once: one look at what is there, not one for each.
  Result<> insert_all(std::span<const Extent> extents);
  // Makes a hole, splitting extents at its ends. Returns what was there: to be freed when the batch is
  // synced. Of more extents than `most` only the first ones go.
  Result<std::vector<Extent>> remove(uint64_t offset, uint64_t length, size_t most = SIZE_MAX);

  // Bytes inserted minus bytes removed so far: add it to space_used.
  int64_t growth() const { return growth_; }
  void write_to(Batch& batch) const;

 private:
  Result<std::vector<Extent>> overlapping(uint64_t offset, uint64_t length, size_t most = SIZE_MAX);

  Extents extents_;
  InodeId inode_;
  std::map<uint64_t, std::optional<Extent>> pending_;  // by end of extent, as the keys are; nullopt: erased
  int64_t growth_ = 0;
};

}  // namespace pnfsrdma::mds
