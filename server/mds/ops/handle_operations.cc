// SPDX-License-Identifier: Apache-2.0
#include "server/mds/ops/handle_keys.h"
#include "server/mds/ops/handlers.h"

namespace pnfsrdma::mds {

using nfs4::Status;

namespace {

// exports(5): who is not in an export's list of clients does not get in, by whatever operation, nor who comes
// from a port that it does not serve.
Outcome<> admit(CompoundContext& context, const Export& to) {
  if (!to.admits(context.peer_host())) return std::unexpected(Status::kAccess);
  return context.check_port(to);
}

// The root as this host sees it: its export, or the way to those that admit the host.
Outcome<> put_root(CompoundContext& context) {
  const auto root = context.services.exports.root(context.peer_host());
  if (!root) return std::unexpected(Status::kAccess);
  TRY(context.check_port(*context.services.exports.find(*root)));
  TRY_ASSIGN(const InodePointer inode, context.services.names.get(kRootInode));
  context.set_current({.export_id = *root, .inode = inode->id, .generation = inode->generation});
  return {};
}

// Made before an export inside of its own was, so that it may lead into that one, or of a snapshot that has been
// deleted. A client that has opened the file must be able to close it.
bool has_lapsed(const CompoundContext& context, const Export& to, const HandleKeys::Decoded& decoded) {
  if (decoded.handle.old || to.id == Exports::kPseudoId) return false;
  if (decoded.superseded) return context.services.exports.at(decoded.handle.inode) != &to;
  return !context.services.names.check_visible(decoded.handle.inode);
}

// What the bytes of a handle do not say: that the directory is (still) seen through this export.
Outcome<> check_place(const CompoundContext& context, const Export& to, const HandleKeys::Decoded& decoded,
                      const Inode& inode) {
  const Exports& exports = context.services.exports;
  bool good = true;
  if (to.id == Exports::kPseudoId) {
    good = exports.in_pseudo(inode.id, context.peer_host());
  } else if (decoded.handle.old && snapshot_of(inode.id) != 0) {
    good = false;  // anybody can have made it: no server of that time had snapshots
  } else if (decoded.handle.old && inode.is_directory()) {
    good = exports.holds(to, inode.id);
  }
  if (!good) return std::unexpected(Status::kStale);
  return {};
}

}  // namespace

// RFC 8881, 18.21
nfs4::PutRootFileHandleResponse handle(CompoundContext& context, const nfs4::PutRootFileHandleArguments&) {
  TRY(put_root(context));
  return Status::kOk;
}

// RFC 8881, 18.20: the public filehandle is the root's.
nfs4::PutPublicFileHandleResponse handle(CompoundContext& context,
                                         const nfs4::PutPublicFileHandleArguments&) {
  TRY(put_root(context));
  return Status::kOk;
}

// RFC 8881, 18.19
nfs4::PutFileHandleResponse handle(CompoundContext& context, const nfs4::PutFileHandleArguments& arguments) {
  TRY_ASSIGN(const HandleKeys::Decoded decoded, context.services.handles.decode(arguments.object));
  const ObjectHandle& handle = decoded.handle;
  const Export* to = context.services.exports.find(handle.export_id);
  if (!to) return Status::kStale;
  // Who is not let in (any more) can give back what he holds. One that anybody may have made says nothing of him.
  const auto admitted = admit(context, *to);
  if (!admitted && handle.old) return admitted.error();
  if (!admitted || has_lapsed(context, *to, decoded)) {
    context.set_current(handle);
    context.current.lapsed = true;
    if (!admitted) context.current.refused = admitted.error();
    return Status::kOk;
  }
  TRY_ASSIGN(const InodePointer inode, context.services.names.get(handle.inode));
  if (inode->generation != handle.generation) return Status::kStale;
  TRY(check_place(context, *to, decoded, *inode));
  context.set_current(handle);
  return Status::kOk;
}

// RFC 8881, 18.8
nfs4::GetFileHandleResponse handle(CompoundContext& context, const nfs4::GetFileHandleArguments&) {
  TRY_ASSIGN(const ObjectHandle handle, context.current_handle());
  return nfs4::GetFileHandleResult{context.services.handles.encode(handle)};
}

// RFC 8881, 18.28
nfs4::SaveFileHandleResponse handle(CompoundContext& context, const nfs4::SaveFileHandleArguments&) {
  TRY(context.current_handle());
  context.saved = context.current;
  return Status::kOk;
}

// RFC 8881, 18.27
nfs4::RestoreFileHandleResponse handle(CompoundContext& context, const nfs4::RestoreFileHandleArguments&) {
  if (!context.saved.handle) return Status::kNoFileHandle;
  context.current = context.saved;
  return Status::kOk;
}

}  // namespace pnfsrdma::mds
