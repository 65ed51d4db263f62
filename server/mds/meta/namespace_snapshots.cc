// SPDX-License-Identifier: Apache-2.0
// What Namespace shows of snapshots: their inodes, and the directory that lists them.
#include <algorithm>

#include "server/mds/meta/namespace.h"
#include "server/mds/meta/values.h"

namespace pnfsrdma::mds {
namespace {

using nfs4::Status;

constexpr uint32_t kListMode = 0555;

uint64_t cookie_of(SnapshotNumber number) {
  return kFirstCookie - 1 + number;
}

}  // namespace

Outcome<> Namespace::check_visible(InodeId id) const {
  const SnapshotNumber number = snapshot_of(id);
  if (number == 0 || number == kSnapshotList) return {};
  const Snapshot* snapshot = snapshots_.find(number);
  if (snapshot == nullptr || !snapshot->is_ready()) return std::unexpected(Status::kStale);
  return {};
}

// As it is stored, the numbers in it are those of live ones.
void Namespace::place_in_snapshot(Inode& inode, SnapshotNumber snapshot) {
  inode.id = inode_in(snapshot, inode.id);
  if (inode.parent != kNoInode) inode.parent = inode_in(snapshot, inode.parent);
}

Outcome<InodePointer> Namespace::snapshot_list(InodeId id) {
  TRY_ASSIGN(const InodePointer above, get_directory(live_inode(id)));
  auto list = std::make_shared<Inode>();
  list->id = id;
  list->generation = above->generation;
  list->type = FileType::kDirectory;
  list->mode = kListMode;
  list->nlink = 2;
  list->parent = above->id;
  list->created = above->created;
  list->mtime = above->created;
  list->next_cookie = cookie_of(snapshots_.now() + 1);
  list->change = snapshots_.changes();
  for (const auto& [number, snapshot] : snapshots_.all()) {
    if (!snapshot.is_ready()) continue;
    ++list->size;
    list->mtime = snapshot.created;
  }
  list->atime = list->ctime = list->mtime;
  return list;
}

Outcome<InodePointer> Namespace::lookup_snapshot(InodeId list, std::string_view name) {
  const Snapshot* snapshot = snapshots_.find(name);
  if (snapshot == nullptr || !snapshot->is_ready()) return std::unexpected(Status::kNoEnt);
  auto found = get(inode_in(snapshot->number, live_inode(list)));
  // The directory is younger than the snapshot.
  if (!found && found.error() == Status::kStale) return std::unexpected(Status::kNoEnt);
  return found;
}

DirectoryPage Namespace::read_snapshot_list(InodeId list, uint64_t cookie, size_t limit) const {
  DirectoryPage page{.entries = {}, .end = true};
  for (const auto& [number, snapshot] : snapshots_.all()) {
    if (!snapshot.is_ready() || cookie_of(number) <= cookie) continue;
    if (page.entries.size() == limit) {
      page.end = false;
      break;
    }
    page.entries.push_back(
        {cookie_of(number), snapshot.name, inode_in(number, live_inode(list)), FileType::kDirectory});
  }
  return page;
}

}  // namespace pnfsrdma::mds
