// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>

#include "server/mds/meta/inode.h"
#include "server/mds/meta/quota.h"

namespace pnfsrdma::mds {

// What everybody has, counted once more: about 100 bytes for each of them. A value of Quotas.
struct QuotaRecount {
  struct Sum {
    uint64_t space = 0;
    uint64_t inodes = 0;

    bool is(const QuotaUsage& usage) const {
      return space == usage.space.used && inodes == usage.inodes.used;
    }
  };

  InodeId counted_to = kRootInode;  // what changes of an inode below it is added at once
  std::map<QuotaId, Sum> sums;

  void add(const QuotaId& id, int64_t space, int64_t inodes) {
    if (space == 0 && inodes == 0) return;
    Sum& sum = sums[id];
    sum.space += static_cast<uint64_t>(space);
    sum.inodes += static_cast<uint64_t>(inodes);
    if (sum.space == 0 && sum.inodes == 0) sums.erase(id);
  }
};

}  // namespace pnfsrdma::mds
