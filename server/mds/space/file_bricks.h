// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <vector>

#include "server/mds/bricks/brick_set.h"
#include "server/mds/grants/range_set.h"
#include "server/mds/meta/extents.h"
#include "server/mds/meta/namespace.h"
#include "shared/base/event_loop.h"
#include "shared/base/lifetime.h"

namespace pnfsrdma::mds {

// Which bricks a range of a file has memory on. A sparse file may have as many extents as the bricks have grains: the
// first kFirstLook are looked at when this is asked, the others so many a turn of the loop.
//
// It takes no turn of the inode. For who holds one, nothing is placed or freed in between. Who holds none hears of what
// was there all the time, and maybe of what came or went meanwhile: he looks again when he has his turn.
//
// Control loop only.
class FileBricks {
 public:
  using Bricks = std::set<BrickNumber>;
  using Found = std::function<void(const Outcome<Bricks>&)>;
  // Whether those are enough to know.
  using Enough = std::function<bool(const Bricks&)>;
  static constexpr size_t kFirstLook = 64;
  static constexpr size_t kExtentsPerTurn = 512;

  FileBricks(EventLoop& loop, KeyValueStore& store, BrickSet& bricks)
      : loop_(loop), store_(store), extents_(store), bricks_(bricks) {}
  FileBricks(const FileBricks&) = delete;
  FileBricks& operator=(const FileBricks&) = delete;

  // OK when all memory of `range` is on bricks that are ready; else what an operation that needs it answers. Which
  // bricks are ready is looked up in the turn of the answer. At once, without a look at the file, when all are.
  void absence(InodeId inode, const ByteRange& range, std::function<void(nfs4::Status)> done);
  // All of them, or as many as are `enough`; once. Not called when this has gone.
  void find(InodeId inode, const ByteRange& range, Enough enough, Found found);

 private:
  struct Search;
  using SearchPointer = std::shared_ptr<Search>;

  void look(const SearchPointer& search, size_t most);
  void enter(const SearchPointer& search, const std::vector<Extent>& extents, size_t most);

  EventLoop& loop_;
  KeyValueStore& store_;
  Extents extents_;
  BrickSet& bricks_;
  Lifetime lifetime_;
};

}  // namespace pnfsrdma::mds
