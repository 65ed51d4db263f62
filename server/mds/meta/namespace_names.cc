// SPDX-License-Identifier: Apache-2.0
// The operations of Namespace that make, move and take away names.
#include <sys/stat.h>

#include "server/mds/meta/namespace_change.h"
#include "shared/base/log.h"

namespace pnfsrdma::mds {
namespace {

using nfs4::Status;

// A regular file that already has the name: what OPEN's create mode makes of it (RFC 8881, 18.16.3).
Outcome<Created> meet(const InodePointer& existing, const Inode& directory, const NewInode& what) {
  const DirectoryChange unchanged{directory.change, directory.change};
  if (what.how == CreateMode::kUnchecked) return Created{existing, true, unchanged};
  const bool same = what.how == CreateMode::kExclusive && existing->is_regular() &&
                    (existing->flags & kInodeHasVerifier) != 0 &&
                    existing->exclusive_verifier == what.verifier;
  if (same) return Created{existing, true, unchanged};
  return std::unexpected(Status::kExist);
}

bool sound_target(const NewInode& what) {
  const std::string& target = what.symlink_target;
  if (what.type != FileType::kSymlink) return target.empty();
  return !target.empty() && target.size() <= kSymlinkBytesMax && target.find('\0') == std::string::npos;
}

}  // namespace

Outcome<Created> Namespace::create(InodeId directory, std::string_view name, const NewInode& what,
                                   const Batch& extra) {
  if (snapshot_of(directory) != 0) return std::unexpected(Status::kRoFs);
  TRY_ASSIGN(const InodePointer parent, get_directory(directory));
  TRY(check_name(name));
  if (!sound_target(what)) return std::unexpected(Status::kInval);
  TRY_ASSIGN(const std::optional<NameEntry> entry, find(directory, name));
  if (entry) {
    TRY_ASSIGN(const InodePointer existing, get(entry->inode));
    return meet(existing, *parent, what);
  }
  if (parent->nlink >= kLinksMax) return std::unexpected(Status::kMLink);
  if (store_.room().full || next_inode_ >= kLiveInodesEnd) return std::unexpected(Status::kNoSpc);
  Change change(*this);
  Inode& inode = change.add(what);
  inode.tree = quotas_.trees().tree_of(*parent);
  inode.nlink = inode.is_directory() ? 2 : 1;
  if ((parent->mode & S_ISGID) != 0) {
    inode.gid = parent->gid;
    if (inode.is_directory()) inode.mode |= S_ISGID;
  }
  Inode& place = change.edit(parent);
  change.enter(place, name, inode);
  change.batch().append(extra);
  TRY(change.commit());
  return Created{change.result(inode.id), false, {parent->change, place.change}};
}

Outcome<Removed> Namespace::remove(InodeId directory, std::string_view name, const Batch& extra) {
  if (snapshot_of(directory) != 0) return std::unexpected(Status::kRoFs);
  TRY_ASSIGN(const InodePointer parent, get_directory(directory));
  TRY(check_name(name));
  TRY_ASSIGN(const std::optional<NameEntry> entry, find(directory, name));
  if (!entry) return std::unexpected(Status::kNoEnt);
  TRY_ASSIGN(const InodePointer victim, get(entry->inode));
  if (victim->is_directory() && victim->size > 0) return std::unexpected(Status::kNotEmpty);
  Change change(*this);
  Inode& place = change.edit(parent);
  Inode& child = change.edit(victim);
  change.take_out(place, name, *entry, child);
  const bool orphaned = change.drop_link(child);
  change.batch().append(extra);
  TRY(change.commit());
  return Removed{change.result(child.id), orphaned, {parent->change, place.change}};
}

// Up from the target: the moved directory must not be on the way.
Outcome<> Namespace::check_outside(const Inode& moved, const Inode& target) {
  for (InodeId at = target.id; moved.is_directory() && at != kRootInode;) {
    if (at == moved.id) return std::unexpected(Status::kInval);
    TRY_ASSIGN(const InodePointer directory, get(at));
    at = directory->parent;
  }
  return {};
}

Outcome<> Namespace::check_replace(const Inode& moved, const Inode& source, const Inode& target,
                                   const Inode* victim) {
  // In its directory it keeps its place, so that who marks a tree meets it, and its tree, whatever that is.
  if (source.id != target.id) TRY(check_tree(moved, source, target));
  TRY(check_outside(moved, target));
  if (victim == nullptr) {
    const bool full = moved.is_directory() && moved.parent != target.id && target.nlink >= kLinksMax;
    return full ? Outcome<>(std::unexpected(Status::kMLink)) : Outcome<>();
  }
  // RFC 8881, 18.26.3 has EXIST where rename(2) has EISDIR and ENOTDIR.
  if (victim->is_directory() != moved.is_directory()) return std::unexpected(Status::kExist);
  if (victim->is_directory() && victim->size > 0) return std::unexpected(Status::kNotEmpty);
  return {};
}

Outcome<Renamed> Namespace::rename(InodeId source, std::string_view source_name, InodeId target,
                                   std::string_view target_name, const Batch& extra) {
  if (snapshot_of(source) != 0 || snapshot_of(target) != 0) return std::unexpected(Status::kRoFs);
  TRY_ASSIGN(const InodePointer from, get_directory(source));
  TRY_ASSIGN(const InodePointer to, get_directory(target));
  TRY(check_name(source_name));
  TRY(check_name(target_name));
  TRY_ASSIGN(const std::optional<NameEntry> entry, find(source, source_name));
  if (!entry) return std::unexpected(Status::kNoEnt);
  TRY_ASSIGN(const InodePointer moved, get(entry->inode));
  TRY_ASSIGN(const std::optional<NameEntry> replaced, find(target, target_name));
  if (replaced && replaced->inode == entry->inode) {
    return Renamed{moved, std::nullopt, {from->change, from->change}, {to->change, to->change}};
  }
  InodePointer victim;
  if (replaced) {
    TRY_ASSIGN(victim, get(replaced->inode));
  }
  TRY(check_replace(*moved, *from, *to, victim.get()));

  Change change(*this);
  Inode& source_place = change.edit(from);
  Inode& target_place = change.edit(to);
  Inode& inode = change.edit(moved);
  Renamed renamed;
  if (victim) {
    Inode& child = change.edit(victim);
    change.take_out(target_place, target_name, *replaced, child);
    renamed.replaced.emplace().orphaned = change.drop_link(child);
  }
  change.take_out(source_place, source_name, *entry, inode);
  // Renamed within its directory it keeps its place: a listing beside renames meets each file once, and ends.
  change.enter(target_place, target_name, inode,
               from->id == to->id ? std::optional(entry->cookie) : std::nullopt);
  change.touch(inode);
  change.batch().append(extra);
  TRY(change.commit());
  renamed.inode = change.result(inode.id);
  renamed.source = {from->change, source_place.change};
  renamed.target = {to->change, target_place.change};
  if (victim) {
    renamed.replaced->inode = change.result(victim->id);
    renamed.replaced->directory = renamed.target;
  }
  return renamed;
}

// `moved` goes to where `other` has been.
Outcome<> Namespace::check_exchange(const Inode& moved, const Inode& source, const Inode& target,
                                    const Inode& other) {
  // In its directory it keeps its tree, but not its place: who marks a tree might miss it.
  const auto fits = check_tree(moved, source, target);
  if (!fits && (source.id != target.id || fits.error() == Status::kDelay)) return fits;
  TRY(check_outside(moved, target));
  const bool one_more = moved.is_directory() && moved.parent != target.id && !other.is_directory();
  return one_more && target.nlink >= kLinksMax ? Outcome<>(std::unexpected(Status::kMLink)) : Outcome<>();
}

Outcome<Exchanged> Namespace::exchange(InodeId first, std::string_view first_name, InodeId second,
                                       std::string_view second_name, const Batch& extra) {
  if (snapshot_of(first) != 0 || snapshot_of(second) != 0) return std::unexpected(Status::kRoFs);
  TRY_ASSIGN(const InodePointer here, get_directory(first));
  TRY_ASSIGN(const InodePointer there, get_directory(second));
  TRY(check_name(first_name));
  TRY(check_name(second_name));
  TRY_ASSIGN(const std::optional<NameEntry> one, find(first, first_name));
  TRY_ASSIGN(const std::optional<NameEntry> other, find(second, second_name));
  if (!one || !other) return std::unexpected(Status::kNoEnt);
  if (one->inode == other->inode)
    return Exchanged{{here->change, here->change}, {there->change, there->change}};
  TRY_ASSIGN(const InodePointer moved, get(one->inode));
  TRY_ASSIGN(const InodePointer met, get(other->inode));
  TRY(check_exchange(*moved, *here, *there, *met));
  TRY(check_exchange(*met, *there, *here, *moved));

  Change change(*this);
  Inode& first_place = change.edit(here);
  Inode& second_place = change.edit(there);
  Inode& one_inode = change.edit(moved);
  Inode& other_inode = change.edit(met);
  change.take_out(first_place, first_name, *one, one_inode);
  change.take_out(second_place, second_name, *other, other_inode);
  // Where the name was: a listing beside exchanges meets each name once.
  change.enter(first_place, first_name, other_inode, one->cookie);
  change.enter(second_place, second_name, one_inode, other->cookie);
  change.touch(one_inode);
  change.touch(other_inode);
  change.batch().append(extra);
  TRY(change.commit());
  return Exchanged{{here->change, first_place.change}, {there->change, second_place.change}};
}

Outcome<Linked> Namespace::link(InodeId id, InodeId directory, std::string_view name, const Batch& extra) {
  if (snapshot_of(id) != 0 || snapshot_of(directory) != 0) return std::unexpected(Status::kRoFs);
  TRY_ASSIGN(const InodePointer parent, get_directory(directory));
  TRY(check_name(name));
  TRY_ASSIGN(const InodePointer target, get(id));
  if (target->is_directory()) return std::unexpected(Status::kIsDir);
  if (target->nlink == 0) return std::unexpected(Status::kStale);
  if (target->nlink >= kLinksMax) return std::unexpected(Status::kMLink);
  TRY_ASSIGN(const std::optional<NameEntry> entry, find(directory, name));
  if (entry) return std::unexpected(Status::kExist);
  TRY(check_tree(*target, *parent, *parent));
  if (store_.room().full) return std::unexpected(Status::kNoSpc);
  Change change(*this);
  Inode& place = change.edit(parent);
  Inode& inode = change.edit(target);
  ++inode.nlink;
  change.touch(inode);
  change.enter(place, name, inode);
  change.batch().append(extra);
  TRY(change.commit());
  return Linked{change.result(id), {parent->change, place.change}};
}

}  // namespace pnfsrdma::mds
