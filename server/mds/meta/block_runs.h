// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "shared/brick/protocol.h"

namespace pnfsrdma::mds {

// A set of block numbers, kept as runs: 1 TiB of contiguous blocks is one entry. Control loop only.
class BlockRuns {
 public:
  // What is there already stays.
  void insert(uint64_t first, uint64_t count);
  // Missing ones are ignored.
  void erase(uint64_t first, uint64_t count);

  bool contains(uint64_t block) const;
  uint64_t count() const { return count_; }
  // The number behind the last block; 0: the set is empty.
  uint64_t end() const;

  // What is here and not in `other`, as runs of logical addresses: the first `most` of them at or behind block `from`,
  // in front of block `to`.
  std::vector<brick::Run> without(const BlockRuns& other, uint64_t from = 0, uint64_t to = UINT64_MAX,
                                  size_t most = SIZE_MAX) const;

 private:
  using Runs = std::map<uint64_t, uint64_t>;  // first -> end; runs neither touch nor overlap

  // The first one that ends behind it.
  Runs::const_iterator behind(uint64_t block) const;

  Runs runs_;
  uint64_t count_ = 0;
};

}  // namespace pnfsrdma::mds
