// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "server/mds/grants/held_layout.h"
#include "server/mds/grants/range_counts.h"
#include "server/mds/meta/brick_records.h"
#include "server/mds/meta/snapshot_keys.h"
#include "server/mds/state/stateid.h"

namespace pnfsrdma::mds {

// A dying grant costs its brick, and the table, a look; so many of one brick are one step.
inline constexpr size_t kGrantsPerPiece = 512;

// Grants of a client that have left its layout of a file and that the brick has not answered for: a piece of all that
// left at once. Does not change.
struct DyingGrants {
  uint64_t number = 0;  // of the table: a later piece has a higher one
  uint64_t inode = 0;
  BrickNumber brick = kNoBrick;  // that has them
  std::vector<HeldGrant> grants;
  uint64_t client = 0;
  ByteRange hull;             // of the bytes of the file
  uint64_t writable_end = 0;  // where the last of those ends by which a client may write; 0: there is none
};
using DyingPointer = std::shared_ptr<const DyingGrants>;

// All layouts that are out, by file and by client, with the grants that are on their way to death: taken from
// the client's layout, not yet answered by the brick. Those count as reachable until the brick says
// otherwise; so all that is taken from a layout goes to begin_death(). Control loop only.
class LayoutTable {
 public:
  using BrickOf = std::function<BrickNumber(uint64_t logical)>;

  HeldLayout* find(uint64_t inode, uint64_t client);
  const HeldLayout* find(uint64_t inode, uint64_t client) const;
  // nullptr: no layout of anybody has this stateid.
  const HeldLayout* find(const std::array<std::byte, 12>& other) const;
  HeldLayout& add(uint64_t inode, uint64_t client, const std::array<std::byte, 12>& other);
  void erase(uint64_t inode, uint64_t client);

  // What changes the grants of a layout of this table goes this way: they are counted.
  void add_grant(HeldLayout& layout, HeldGrant grant);
  std::vector<HeldGrant> give_back(HeldLayout& layout, const ByteRange& range, IoMode mode);
  std::vector<HeldGrant> take_back(HeldLayout& layout, std::span<const HeldGrant> grants);
  // An answer tells the layout: as with add(), its version is newer than any before.
  const LayoutStateid& advance(HeldLayout& layout);
  // The newest version of any layout.
  uint64_t versions() const { return versions_; }

  std::vector<HeldLayout*> of_file(uint64_t inode);
  // Everybody who holds something of the file, or held it and is not dead to it yet.
  std::vector<uint64_t> clients_of_file(uint64_t inode) const;
  std::vector<uint64_t> files_of_client(uint64_t client) const { return files_of_client(client, SIZE_MAX); }
  // In order, the first so many of them behind file `after`.
  std::vector<uint64_t> files_of_client(uint64_t client, size_t most, uint64_t after = 0) const;
  size_t layouts_of_client(uint64_t client) const;
  // All who hold something.
  std::vector<uint64_t> clients() const;
  // In order, the first `most` files from this one on that somebody may write; and those of a snapshot that have
  // layouts or dying grants.
  std::vector<uint64_t> written_files(uint64_t from, size_t most) const;
  // How many they are.
  size_t written() const { return written_.size(); }
  std::vector<uint64_t> files_of_snapshot(SnapshotNumber snapshot, size_t most) const;

  // In pieces, each of one brick, that end by themselves.
  std::vector<DyingPointer> begin_death(uint64_t inode, uint64_t client, std::vector<HeldGrant> grants,
                                        const BrickOf& brick_of);
  void end_death(const DyingGrants& piece);

  // Whether that is so of any piece of the client that is dying.
  bool any_dying(uint64_t inode, uint64_t client, const std::function<bool(const DyingGrants&)>& is_so) const;
  uint64_t newest_dying() const { return next_dying_ - 1; }
  // By number, the first `most` behind `after` that are dying.
  std::vector<DyingPointer> dying(uint64_t after = 0, size_t most = SIZE_MAX) const;

  // Whether memory behind `range` may still be touched: by `client`, or by anybody (0).
  bool reachable(uint64_t inode, const ByteRange& range, uint64_t client = 0) const;
  // Whether memory at or behind `offset` may still be written: by `client`, or by anybody (0).
  bool writable_past(uint64_t inode, uint64_t offset, uint64_t client = 0) const;
  // The client that owns the end of the file, other than `client`; 0: none.
  uint64_t end_holder(uint64_t inode, uint64_t client) const;
  // Whether somebody may write each byte of it.
  bool may_be_written(uint64_t inode, const ByteRange& range) const;
  // What of `bytes` nobody may write any more.
  RangeSet out_of_reach(uint64_t inode, RangeSet bytes) const;
  // Layouts or dying grants of the file.
  bool in_use(uint64_t inode) const { return files_.contains(inode); }
  // Whether somebody may write anywhere in the file.
  bool writable(uint64_t inode) const { return writable_past(inode, 0); }
  // Of everybody; without those that are dying.
  size_t layouts() const { return by_stateid_.size(); }
  size_t grants() const { return grants_; }

 private:
  void count(const HeldLayout& layout, size_t before);
  struct File {
    std::map<uint64_t, HeldLayout> layouts;                       // by client
    std::map<std::pair<uint64_t, uint64_t>, DyingPointer> dying;  // by client and number
    RangeCounts written;                                          // by grants of both
  };
  File& file_of(uint64_t inode);
  // Of a client; 0: of everybody.
  static bool any_piece(const File& file, uint64_t client,
                        const std::function<bool(const DyingGrants&)>& is_so);
  void leave_written(uint64_t inode, File& file, std::span<const HeldGrant> grants);
  static bool any_layout(const File& file, uint64_t client,
                         const std::function<bool(const HeldLayout&)>& is_so);
  void drop_if_empty(uint64_t inode);

  std::unordered_map<uint64_t, File> files_;
  std::unordered_map<uint64_t, std::set<uint64_t>> by_client_;  // its files
  std::unordered_map<StateidOther, HeldLayout*, StateidOtherHash> by_stateid_;
  std::map<uint64_t, DyingPointer> dying_;  // by number
  std::set<uint64_t> written_;              // files that somebody may write
  std::set<uint64_t> in_snapshots_;         // files of snapshots
  size_t grants_ = 0;
  uint64_t versions_ = 0;
  uint64_t next_dying_ = 1;
};

}  // namespace pnfsrdma::mds
