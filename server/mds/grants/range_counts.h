// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

#include "server/mds/grants/range_set.h"

namespace pnfsrdma::mds {

// How often each byte is covered by ranges that come and go. Neighbours that are covered equally often are one, so its
// size is that of the different ends there are. A value.
class RangeCounts {
 public:
  void add(const ByteRange& range);
  // One that was added.
  void remove(const ByteRange& range);
  bool empty() const { return counts_.empty(); }
  // Behind the last covered byte; 0: there is none.
  uint64_t end() const { return counts_.empty() ? 0 : counts_.rbegin()->first; }
  // Whether each byte of it is covered. Of what is not covered, it looks at the first byte only.
  bool covers(const ByteRange& range) const;
  // Takes out what is covered.
  void take_from(RangeSet& bytes) const;

 private:
  using Counts = std::map<uint64_t, size_t>;  // from this offset on; the last one's is 0

  Counts::iterator split(uint64_t offset);
  void join(uint64_t offset);
  Counts::const_iterator at(uint64_t offset) const;

  Counts counts_;
};

}  // namespace pnfsrdma::mds
