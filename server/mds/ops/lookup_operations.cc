// SPDX-License-Identifier: Apache-2.0
#include "server/mds/ops/handlers.h"

namespace pnfsrdma::mds {

using nfs4::Status;

namespace {

// In the pseudo file system: only the ways to exports that admit the host.
Outcome<ObjectHandle> look_up_pseudo(const CompoundContext& context, InodeId directory,
                                     std::string_view name) {
  const std::string_view host = context.peer_host();
  const Exports& exports = context.services.exports;
  for (const Exports::PseudoEntry& entry : exports.pseudo_entries(directory, host)) {
    if (entry.name != name) continue;
    TRY_ASSIGN(const InodePointer inode, context.services.names.get(entry.inode));
    const auto through = exports.seen_through(Exports::kPseudoId, inode->id, host);
    if (through) return context.handle_of(*inode, *through);
  }
  return std::unexpected(Status::kNoEnt);
}

// What LOOKUP of `name` in the current directory leads to: checks and all, but changes nothing.
Outcome<ObjectHandle> look_up(const CompoundContext& context, std::string_view name) {
  TRY_ASSIGN(const InodePointer directory, context.current_directory());
  TRY(context.check_access(*directory, kMayExecute));
  const uint16_t current = context.current.handle->export_id;
  if (current == Exports::kPseudoId) return look_up_pseudo(context, directory->id, name);
  TRY_ASSIGN(const InodePointer inode, context.lookup(*directory, name));
  if (!inode->is_directory()) return context.handle_of(*inode);
  // The path of another export may begin here.
  const auto through = context.services.exports.seen_through(current, inode->id, context.peer_host());
  if (!through) return std::unexpected(Status::kAccess);
  return context.handle_of(*inode, *through);
}

// The way by which LOOKUP has come: what is above an export's directory in a snapshot is not the export's.
Outcome<ObjectHandle> look_up_parent_of_snapshot(const CompoundContext& context, InodeId directory) {
  Namespace& names = context.services.names;
  const InodeId live = live_inode(directory);
  if (context.services.exports.at(live) != &context.current_export()) {
    TRY_ASSIGN(const InodePointer parent, names.lookup_parent(directory));
    return context.handle_of(*parent);
  }
  const bool is_list = snapshot_of(directory) == kSnapshotList;
  TRY_ASSIGN(const InodePointer above, names.get(is_list ? live : inode_in(kSnapshotList, live)));
  return context.handle_of(*above);
}

Outcome<ObjectHandle> look_up_parent(const CompoundContext& context) {
  TRY_ASSIGN(const InodePointer directory, context.current_directory());
  TRY(context.check_access(*directory, kMayExecute));
  if (snapshot_of(directory->id) != 0) return look_up_parent_of_snapshot(context, directory->id);
  const uint16_t current = context.current.handle->export_id;
  const Exports& exports = context.services.exports;
  TRY_ASSIGN(const InodePointer parent, context.services.names.lookup_parent(directory->id));
  // Up out of an export's own directory is into what is around it, as far as this host sees that.
  if (current != Exports::kPseudoId && exports.at(directory->id) != &context.current_export())
    return context.handle_of(*parent);
  const auto through = exports.above(current, directory->id, context.peer_host());
  if (!through) return std::unexpected(Status::kNoEnt);
  return context.handle_of(*parent, *through);
}

// AUTH_SYS first: the one that carries an identity.
xdr::List<nfs4::SecurityFlavor, nfs4::kSmallListMax> security_flavors() {
  return {{nfs4::SecurityFlavor::of(nfs4::kFlavorSys), nfs4::SecurityFlavor::of(nfs4::kFlavorNone)}};
}

}  // namespace

// RFC 8881, 18.13
nfs4::LookupResponse handle(CompoundContext& context, const nfs4::LookupArguments& arguments) {
  TRY_ASSIGN(const ObjectHandle found, look_up(context, arguments.name));
  context.set_current(found);
  return Status::kOk;
}

// RFC 8881, 18.14
nfs4::LookupParentResponse handle(CompoundContext& context, const nfs4::LookupParentArguments&) {
  TRY_ASSIGN(const ObjectHandle found, look_up_parent(context));
  context.set_current(found);
  return Status::kOk;
}

// RFC 8881, 18.29: whoever may look the name up may ask; the current filehandle is used up.
nfs4::SecurityInfoResponse handle(CompoundContext& context, const nfs4::SecurityInfoArguments& arguments) {
  TRY(look_up(context, arguments.name));
  context.current = {};
  return nfs4::SecurityInfoResult{security_flavors()};
}

// RFC 8881, 18.45
nfs4::SecurityInfoNoNameResponse handle(CompoundContext& context,
                                        const nfs4::SecurityInfoNoNameArguments& arguments) {
  TRY(context.current_inode());
  if (arguments.style == nfs4::SecurityInfoStyle::kParent) TRY(look_up_parent(context));
  context.current = {};
  return nfs4::SecurityInfoNoNameResult{security_flavors()};
}

}  // namespace pnfsrdma::mds
