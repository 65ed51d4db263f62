// SPDX-License-Identifier: Apache-2.0
#include "server/mds/space/file_bricks.h"

#include <algorithm>
#include <utility>

#include "server/mds/meta/read_then.h"

namespace pnfsrdma::mds {

struct FileBricks::Search {
  InodeId inode = kNoInode;
  ByteRange left;  // not looked at yet
  Enough enough;
  Found found;
  Bricks bricks;

  void finish() { std::exchange(found, nullptr)(bricks); }
};

void FileBricks::absence(InodeId inode, const ByteRange& range, std::function<void(nfs4::Status)> done) {
  if (bricks_.ready()) return done(nfs4::Status::kOk);
  // Nothing that is found behind those that are away changes the answer.
  const auto enough = [this](const Bricks& found) {
    return std::ranges::all_of(bricks_.all(), [&](const BrickDevice* brick) {
      return brick->ready() || found.contains(brick->number());
    });
  };
  find(inode, range, enough, [this, done = std::move(done)](const Outcome<Bricks>& found) {
    done(found ? bricks_.absence(*found) : found.error());
  });
}

void FileBricks::find(InodeId inode, const ByteRange& range, Enough enough, Found found) {
  const auto search = std::make_shared<Search>(Search{
      .inode = inode, .left = range, .enough = std::move(enough), .found = std::move(found), .bricks = {}});
  look(search, kFirstLook);
}

void FileBricks::look(const SearchPointer& search, size_t most) {
  if (search->left.empty()) return search->finish();
  read_then(
      store_, lifetime_.token(),
      [this, search, most] {
        return extents_.overlapping(search->inode, search->left.begin, search->left.length(), most);
      },
      [this, search, most](const Result<std::vector<Extent>>& extents) {
        if (!extents)
          return std::exchange(search->found, nullptr)(std::unexpected(status_of(extents.error())));
        enter(search, *extents, most);
      });
}

void FileBricks::enter(const SearchPointer& search, const std::vector<Extent>& extents, size_t most) {
  for (const Extent& extent : extents) search->bricks.insert(bricks_.at(extent.logical).number());
  if (extents.size() < most || search->enough(search->bricks)) return search->finish();
  search->left.begin = extents.back().end();
  // Many may ask at once, as when a brick is away that their files are on.
  loop_.at_own_turn(lifetime_.guard([this, search] { look(search, kExtentsPerTurn); }));
}

}  // namespace pnfsrdma::mds
