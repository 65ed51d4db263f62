// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "server/mds/ops/attribute_values.h"
#include "server/mds/ops/handlers.h"
#include "server/mds/ops/new_inode.h"
#include "server/mds/state/conflicts.h"
#include "server/mds/state/delegations.h"
#include "shared/nfs4/rename_wish.h"

namespace pnfsrdma::mds {

using nfs4::Status;

namespace {

Outcome<> outcome(Status status) {
  if (status != Status::kOk) return std::unexpected(status);
  return {};
}

nfs4::ChangeInfo change_info(const DirectoryChange& change) {
  return {true, change.before, change.after};
}

// A directory that is gone has no handle any more under which its delegation could be returned, so the client's own
// ends here; nobody else has one by now.
void drop_directory_delegation(CompoundContext& context, const Inode& removed) {
  const DelegationTable& table = context.services.delegations.table();
  const DelegationState* own = removed.is_directory() ? table.find(removed.id, context.client_id()) : nullptr;
  // Where it cannot be taken off record, its client's end does.
  if (own != nullptr) (void)context.services.delegations.give_back(*table.find(own->other));
}

// The layout module frees what was unlinked while in use, or while it has space.
void hand_over_orphan(CompoundContext& context, const Removed& removed) {
  drop_directory_delegation(context, *removed.inode);
  if (!removed.orphaned) return;
  // Who has removed it returns his own by himself: he knows.
  context.services.delegations.recall(removed.inode->id, context.client_id(), [](Status) {});
  context.services.layouts.on_orphaned(removed.inode->id);
}

// The directory of an export, and each on the way to it, stays: as a mount point does, EBUSY (which has this
// name on the wire).
Outcome<> check_not_pinned(const CompoundContext& context, const Inode& inode) {
  if (inode.is_directory() && context.services.exports.pinned(inode.id))
    return std::unexpected(Status::kFileOpen);
  return {};
}

// The list of snapshots has a name among live files, and keeps it.
Outcome<> check_live(const Inode& inode) {
  if (snapshot_of(inode.id) != 0) return std::unexpected(Status::kRoFs);
  return {};
}

// What is known of a directory through this export would be known of the one that waits for the name.
Outcome<> check_not_awaited(const CompoundContext& context, const Inode& moved, const Inode& target,
                            std::string_view name) {
  if (moved.is_directory() && context.services.exports.awaited(target.id, name))
    return std::unexpected(Status::kFileOpen);
  return {};
}

struct NamedInode {
  const Inode& directory;
  const Inode& inode;
  std::string_view name;
};

// The client says by VERIFY which two files it means: repeated in another session, a request that was done finds
// them exchanged, and so does one that has waited here meanwhile.
Outcome<> check_verified(const CompoundContext& context, const NamedInode& first, const NamedInode& second) {
  if (context.verified[0] == kNoInode) return std::unexpected(Status::kInval);
  if (context.verified != std::array{first.inode.id, second.inode.id})
    return std::unexpected(Status::kNotSame);
  return {};
}

Outcome<nfs4::RenameResult> exchange(CompoundContext& context, const NamedInode& first,
                                     const NamedInode& second) {
  TRY(check_verified(context, first, second));
  TRY(outcome(
      check_exchange(context.requester(), first.directory, first.inode, second.directory, second.inode)));
  TRY(check_not_pinned(context, first.inode));
  TRY(check_not_pinned(context, second.inode));
  TRY(check_not_awaited(context, first.inode, second.directory, second.name));
  TRY(check_not_awaited(context, second.inode, first.directory, first.name));
  TRY(context.recall_delegations(first.directory));
  TRY(context.recall_delegations(second.directory));
  TRY(context.recall_delegations(first.inode));
  TRY(context.recall_delegations(second.inode));
  TRY_ASSIGN(const Exchanged done,
             context.services.names.exchange(first.directory.id, first.name, second.directory.id, second.name,
                                             context.done_record()));
  return nfs4::RenameResult{change_info(done.first), change_info(done.second)};
}

Outcome<FileType> creatable_type(nfs4::FileType type) {
  switch (type) {
    case nfs4::FileType::kDirectory:
    case nfs4::FileType::kLink:
    case nfs4::FileType::kBlock:
    case nfs4::FileType::kCharacter:
    case nfs4::FileType::kSocket:
    case nfs4::FileType::kFifo:
      return static_cast<FileType>(type);
    default:  // regular files are OPEN's
      return std::unexpected(Status::kBadType);
  }
}

}  // namespace

// RFC 8881, 18.4
nfs4::CreateResponse handle(CompoundContext& context, const nfs4::CreateArguments& arguments) {
  TRY_ASSIGN(const InodePointer directory, context.current_directory());
  TRY_ASSIGN(const FileType type, creatable_type(arguments.type.discriminant()));
  TRY(context.check_writable());
  TRY(context.check_new_name(*directory, arguments.name));
  TRY_ASSIGN(NewInode wanted, new_inode(context, *directory, type, arguments.attributes));
  TRY(outcome(check_create(context.requester(), *directory)));
  if (const nfs4::LinkText* text = arguments.type.get_if<nfs4::FileType::kLink>()) {
    if (text->size() > kSymlinkBytesMax) return Status::kNameTooLong;
    wanted.symlink_target = *text;
  }
  const nfs4::SpecialData* device = arguments.type.get_if<nfs4::FileType::kBlock>();
  if (!device) device = arguments.type.get_if<nfs4::FileType::kCharacter>();
  if (device) {
    // mknod(2): device nodes are for root alone.
    if (!context.credentials().is_root()) return Status::kPerm;
    wanted.device_major = device->major;
    wanted.device_minor = device->minor;
  }
  TRY(context.recall_delegations(*directory));
  // Behind the change the names on the ways to exports are asked for: they are read before it.
  static_cast<void>(context.services.exports.awaited(directory->id, arguments.name));
  if (context.reads.missed()) return kSuspended;
  TRY_ASSIGN(const Created created,
             context.services.names.create(directory->id, arguments.name, wanted, context.done_record()));
  // It may be the directory an export was waiting for.
  const auto through = context.services.exports.seen_through(context.current.handle->export_id,
                                                             created.inode->id, context.peer_host());
  context.set_current(context.handle_of(*created.inode, through.value_or(Exports::kPseudoId)));
  return nfs4::CreateResult{change_info(created.directory), arguments.attributes.mask()};
}

// RFC 8881, 18.9
nfs4::LinkResponse handle(CompoundContext& context, const nfs4::LinkArguments& arguments) {
  TRY_ASSIGN(const InodePointer inode, context.saved_inode());
  TRY_ASSIGN(const InodePointer directory, context.current_directory());
  if (inode->is_directory()) return Status::kIsDir;
  TRY(context.check_writable());
  TRY(context.check_new_name(*directory, arguments.new_name));
  // Whose file it may be is the matter of the caller's host (Linux: fs.protected_hardlinks).
  TRY(outcome(check_create(context.requester(), *directory)));
  TRY(context.recall_delegations(*directory));
  TRY(context.recall_delegations(*inode));
  TRY_ASSIGN(const Linked linked, context.services.names.link(inode->id, directory->id, arguments.new_name,
                                                              context.done_record()));
  return nfs4::LinkResult{change_info(linked.directory)};
}

// RFC 8881, 18.24
nfs4::ReadLinkResponse handle(CompoundContext& context, const nfs4::ReadLinkArguments&) {
  TRY_ASSIGN(const InodePointer inode, context.current_inode());
  if (inode->type != FileType::kSymlink) return Status::kWrongType;
  return nfs4::ReadLinkResult{nfs4::LinkText(inode->symlink_target)};
}

// RFC 8881, 18.25
nfs4::RemoveResponse handle(CompoundContext& context, const nfs4::RemoveArguments& arguments) {
  TRY_ASSIGN(const InodePointer directory, context.current_directory());
  TRY(context.check_writable());
  TRY(context.check_access(*directory, kMayExecute));
  Namespace& names = context.services.names;
  TRY_ASSIGN(const InodePointer victim, context.lookup(*directory, arguments.target));
  TRY(check_live(*victim));
  TRY(outcome(check_remove(context.requester(), *directory, *victim)));
  TRY(check_not_pinned(context, *victim));
  TRY(context.recall_delegations(*directory));
  TRY(context.recall_delegations(*victim));
  TRY_ASSIGN(const Removed removed, names.remove(directory->id, arguments.target, context.done_record()));
  hand_over_orphan(context, removed);
  return nfs4::RemoveResult{change_info(removed.directory)};
}

// RFC 8881, 18.26, and what docs/protocol.md adds to it.
nfs4::RenameResponse handle(CompoundContext& context, const nfs4::RenameArguments& arguments) {
  TRY_ASSIGN(const InodePointer source, context.saved_inode());
  if (source->type == FileType::kSymlink) return Status::kSymlink;
  if (!source->is_directory()) return Status::kNotDir;
  TRY_ASSIGN(const InodePointer target, context.current_directory());
  TRY(context.check_writable());
  TRY(context.check_access(*source, kMayExecute));
  TRY(context.check_access(*target, kMayExecute));
  const nfs4::RenameWish wish = nfs4::rename_wish(arguments.new_name);
  Namespace& names = context.services.names;
  // The new name first: one that cannot be is said to be so, whether the old one is there or not.
  InodePointer replaced;
  TRY(context.check_new_name(*target, wish.new_name));
  if (auto found = context.lookup(*target, wish.new_name)) {
    replaced = *std::move(found);
    TRY(check_not_pinned(context, *replaced));
  } else if (found.error() != Status::kNoEnt) {
    return found.error();
  }
  TRY_ASSIGN(const InodePointer moved, context.lookup(*source, arguments.old_name));
  TRY(check_live(*moved));
  if (wish.how == nfs4::RenameHow::kExchange && !replaced) return Status::kNoEnt;
  // It is asked again in the run that renames, so nobody comes between.
  if (wish.how == nfs4::RenameHow::kNoReplace && replaced) return Status::kExist;
  if (wish.how == nfs4::RenameHow::kExchange)
    return exchange(context, {*source, *moved, arguments.old_name}, {*target, *replaced, wish.new_name});
  TRY(outcome(check_rename(context.requester(), *source, *moved, *target, replaced.get())));
  TRY(check_not_pinned(context, *moved));
  TRY(check_not_awaited(context, *moved, *target, wish.new_name));
  TRY(context.recall_delegations(*source));
  TRY(context.recall_delegations(*target));
  TRY(context.recall_delegations(*moved));
  if (replaced) TRY(context.recall_delegations(*replaced));
  TRY_ASSIGN(const Renamed renamed,
             names.rename(source->id, arguments.old_name, target->id, wish.new_name, context.done_record()));
  if (renamed.replaced) hand_over_orphan(context, *renamed.replaced);
  return nfs4::RenameResult{change_info(renamed.source), change_info(renamed.target)};
}

}  // namespace pnfsrdma::mds
