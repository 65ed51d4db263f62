// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "server/mds/meta/namespace.h"
#include "shared/base/event_loop.h"
#include "shared/base/lifetime.h"

namespace pnfsrdma::mds {

// Marks all that is in the directories that became quota trees, one tree at a time, some entries a turn of the loop.
// What is made meanwhile is marked by itself, and what is not marked yet goes nowhere in the tree, so nothing escapes.
// A restart begins each unfinished tree anew. Control loop only.
class QuotaTreeWalk {
 public:
  static constexpr size_t kEntriesPerTurn = 64;

  QuotaTreeWalk(EventLoop& loop, Namespace& names) : loop_(loop), names_(names) {}

  // No effect where it is under way, or all trees are complete.
  void start();

 private:
  // A directory on the way, and how far its entries are marked. What comes later than it was marked itself has its
  // number already: it ends there, however fast it grows.
  struct Place {
    InodeId directory = kNoInode;
    uint64_t cookie = 0;
    uint64_t end = 0;  // 0: not known yet
  };
  struct Look {
    DirectoryPage page;
    uint64_t next_cookie = 0;
  };
  void next();
  Outcome<Look> look();
  void mark(const Outcome<Look>& look);
  bool mark_entries(const DirectoryPage& page);
  void finish();
  void again();

  EventLoop& loop_;
  Namespace& names_;
  TreeNumber tree_;         // 0: none is being marked
  std::vector<Place> way_;  // as deep as the tree
  Lifetime lifetime_;
};

}  // namespace pnfsrdma::mds
