// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include "server/mds/grants/range_set.h"
#include "server/mds/meta/brick_records.h"
#include "shared/nfs4/basic_types.h"

namespace pnfsrdma::mds {

// writeverf4 (RFC 8881, 18.32.3): another one tells a client to send again what it wrote UNSTABLE4 and did
// not COMMIT. One COMMIT carries one verifier, whatever bricks hold the file; so it is made of what the whole
// server may lose (the metadata's era) and of a number per file, which moves on when a brick that took an
// uncommitted write of *this file* has another verifier now. A brick that joins, leaves or restarts doubts
// its own bytes only.
//
// `changes` counts how often a brick's verifier was seen to change, by all starts of this server (BrickList
// keeps it). A file without uncommitted writes stands at the newest number, so nothing has to be remembered
// of it, and a number that once said "lost" never comes again, not even from the next process.
//
// Where writes may be unknown (of a file that is older than this process, or was forgotten because only so
// many are kept), the loss of any brick counts. A value without I/O. Control loop only.
class WriteVerifiers {
 public:
  static constexpr size_t kFilesMax = 65'536;
  // By the numbers of the bricks a write went to.
  using Bricks = std::map<BrickNumber, BrickVerifier>;
  // A brick's verifier now; none: it is not one of ours any more, and has lost what it had.
  using Current = std::function<std::optional<BrickVerifier>(BrickNumber)>;

  // `first_new`: inodes from this one on are made by this process.
  explicit WriteVerifiers(uint64_t era, uint64_t first_new = 0, size_t files_max = kFilesMax)
      : era_(era), first_new_(first_new), files_max_(files_max) {}

  // An UNSTABLE4 write of `range` went to these bricks while they had these verifiers; the answer's writeverf4.
  nfs4::Verifier wrote(uint64_t inode, const ByteRange& range, const Bricks& bricks, uint64_t changes,
                       const Current& current);
  // Before a flush: how much of the file it covers.
  uint64_t mark(uint64_t inode) const;
  // Behind it. `whole`: it covered everything that was written up to the mark.
  nfs4::Verifier committed(uint64_t inode, uint64_t mark, bool whole, uint64_t changes,
                           const Current& current);
  size_t files() const { return files_.size(); }
  // Of the files that are still kept: which were written and not committed since, and where. Of more ranges than this
  // those are one that have the least between them.
  static constexpr size_t kRangesMax = 16;
  std::vector<uint64_t> uncommitted() const;
  std::vector<ByteRange> uncommitted(uint64_t inode) const;

 private:
  struct File {
    uint64_t inode = 0;
    uint64_t number = 0;
    uint64_t writes = 0;
    bool unknown_writes = false;  // there may be some that `bricks` does not know
    std::set<std::pair<BrickNumber, BrickVerifier>> bricks;
    RangeSet uncommitted;
  };
  using Files = std::list<File>;  // written last at the back

  nfs4::Verifier verifier(uint64_t number) const;
  static void add(RangeSet& uncommitted, const ByteRange& range);
  static void look(File& file, uint64_t changes, const Current& current);

  const uint64_t era_;
  const uint64_t first_new_;
  const size_t files_max_;
  uint64_t writes_ = 0;
  bool any_forgotten_ = false;
  Files files_;
  std::unordered_map<uint64_t, Files::iterator> by_inode_;
};

}  // namespace pnfsrdma::mds
