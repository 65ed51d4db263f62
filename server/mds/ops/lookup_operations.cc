// SPDX-License-Identifier: Apache-2.0
#include "server/mds/ops/handlers.h"

namespace pnfsrdma::mds {

using nfs4::Status;

namespace {

// What LOOKUP of `name` in the current directory leads to: checks and all, but changes nothing.
Outcome<ObjectHandle> look_up(const CompoundContext& context, std::string_view name) {
  TRY_ASSIGN(const InodePointer directory, context.current_directory());
  TRY(context.check_access(*directory, kMayExecute));
  TRY_ASSIGN(const InodePointer inode, context.services.names.lookup(directory->id, name));
  const Exports& exports = context.services.exports;
  ObjectHandle found{context.current.handle->export_id, inode->id, inode->generation};
  if (!inode->is_directory()) {
    if (found.export_id == Exports::kPseudoId) return std::unexpected(Status::kNoEnt);
    return found;
  }
  // The path of another export begins here.
  if (const Export* crossed = exports.at(inode->id); crossed && crossed->id != found.export_id) {
    if (!crossed->admits(context.peer_host())) return std::unexpected(Status::kAccess);
    found.export_id = crossed->id;
  } else if (found.export_id == Exports::kPseudoId && !exports.leads_to_export(inode->id)) {
    return std::unexpected(Status::kNoEnt);
  }
  return found;
}

Outcome<ObjectHandle> look_up_parent(const CompoundContext& context) {
  TRY_ASSIGN(const InodePointer directory, context.current_directory());
  TRY(context.check_access(*directory, kMayExecute));
  TRY_ASSIGN(const InodePointer parent, context.services.names.lookup_parent(directory->id));
  ObjectHandle found{context.current.handle->export_id, parent->id, parent->generation};
  const Exports& exports = context.services.exports;
  // Up out of an export's own directory is into the export around it.
  if (exports.at(directory->id) == &context.current_export()) {
    const Export* above = exports.above(context.current_export());
    if (!above) return std::unexpected(Status::kNoEnt);
    if (!above->admits(context.peer_host())) return std::unexpected(Status::kAccess);
    found.export_id = above->id;
  }
  return found;
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
