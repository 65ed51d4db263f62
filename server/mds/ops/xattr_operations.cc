// SPDX-License-Identifier: Apache-2.0
#include "server/mds/meta/xattrs.h"
#include "server/mds/ops/handlers.h"

// Extended attributes (RFC 8276): the "user" ones of Linux, of regular files and directories.
namespace pnfsrdma::mds {

using nfs4::Status;

namespace {

// Of a LISTXATTRS result: the cookie, the count of names, and whether they are all.
constexpr size_t kListResultBytes = 8 + 4 + 4;
// Of a GETXATTR result: status and length of the value, and its padding.
constexpr size_t kValueResultBytes = 4 + 4 + 3;

Outcome<InodePointer> owner_of_xattrs(const CompoundContext& context, uint32_t wanted) {
  TRY_ASSIGN(InodePointer inode, context.current_inode());
  if ((wanted & kMayWrite) != 0) TRY(context.check_writable());
  const Status allowed = check_xattrs(context.requester(), *inode, wanted);
  if (allowed != Status::kOk) return std::unexpected(allowed);
  return inode;
}

nfs4::ChangeInfo xattr_change(const DirectoryChange& change) {
  return {true, change.before, change.after};
}

size_t encoded_bytes(std::string_view name) {
  return sizeof(uint32_t) + (name.size() + 3) / 4 * 4;
}

XattrMode mode_of(nfs4::SetXattrOption option) {
  switch (option) {
    case nfs4::SetXattrOption::kCreate:
      return XattrMode::kCreate;
    case nfs4::SetXattrOption::kReplace:
      return XattrMode::kReplace;
    default:
      return XattrMode::kEither;
  }
}

}  // namespace

// RFC 8276, 8.4.1
nfs4::GetXattrResponse handle(CompoundContext& context, const nfs4::GetXattrArguments& arguments) {
  TRY_ASSIGN(const InodePointer inode, owner_of_xattrs(context, kMayRead));
  TRY_ASSIGN(Bytes value, Xattrs(context.services.names).get(*inode, arguments.name));
  if (value.size() + kValueResultBytes > context.reply_room)
    return context.keep_reply ? Status::kRepTooBigToCache : Status::kRepTooBig;
  return nfs4::GetXattrResult{std::move(value)};
}

// RFC 8276, 8.4.2
nfs4::SetXattrResponse handle(CompoundContext& context, const nfs4::SetXattrArguments& arguments) {
  TRY_ASSIGN(const InodePointer inode, owner_of_xattrs(context, kMayWrite));
  if (arguments.value.size() > kXattrBytesMax) return Status::kXattr2Big;
  TRY(context.recall_delegations(*inode));
  TRY_ASSIGN(const DirectoryChange change, Xattrs(context.services.names)
                                               .set(*inode, arguments.key, arguments.value,
                                                    mode_of(arguments.option), context.done_record()));
  return nfs4::SetXattrResult{xattr_change(change)};
}

// RFC 8276, 8.4.3. A cookie is the number of names before it.
nfs4::ListXattrsResponse handle(CompoundContext& context, const nfs4::ListXattrsArguments& arguments) {
  TRY_ASSIGN(const InodePointer inode, owner_of_xattrs(context, kMayRead));
  TRY_ASSIGN(std::vector<std::string> names, Xattrs(context.services.names).list(*inode));
  if (arguments.cookie > names.size()) return Status::kBadCookie;
  size_t room = std::min(arguments.max_count, context.reply_room);
  if (room < kListResultBytes) return Status::kTooSmall;
  room -= kListResultBytes;
  nfs4::ListXattrsResult result{.cookie = arguments.cookie, .names = {}, .end = false};
  while (result.cookie < names.size() && encoded_bytes(names[result.cookie]) <= room) {
    room -= encoded_bytes(names[result.cookie]);
    result.names.emplace_back(std::move(names[result.cookie++]));
  }
  result.end = result.cookie == names.size();
  if (result.names.empty() && !result.end) return Status::kTooSmall;
  return result;
}

// RFC 8276, 8.4.4
nfs4::RemoveXattrResponse handle(CompoundContext& context, const nfs4::RemoveXattrArguments& arguments) {
  TRY_ASSIGN(const InodePointer inode, owner_of_xattrs(context, kMayWrite));
  TRY(context.recall_delegations(*inode));
  TRY_ASSIGN(const DirectoryChange change,
             Xattrs(context.services.names).remove(*inode, arguments.name, context.done_record()));
  return nfs4::RemoveXattrResult{xattr_change(change)};
}

}  // namespace pnfsrdma::mds
