// SPDX-License-Identifier: Apache-2.0
#include "server/mds/ops/attribute_values.h"
#include "server/mds/ops/handlers.h"

namespace pnfsrdma::mds {

using nfs4::Status;

namespace {

inline constexpr size_t kPageEntries = 128;
// cookieverf, the end of the list, eof.
inline constexpr size_t kFixedBytes = 8 + 4 + 4;

// The attributes of one entry. Where it is the directory of another export, that one's (the client sees a
// mount point); where the inode cannot be read, rdattr_error if that was asked for (RFC 8881, 18.23.3).
Outcome<nfs4::Attributes> entry_attributes(const CompoundContext& context, const DirectoryEntry& entry,
                                           const nfs4::Bitmap& requested) {
  const Services& services = context.services;
  const Export* through = &context.current_export();
  auto inode = services.names.get(entry.inode);
  if (!inode) {
    if (!requested.test(nfs4::Attribute::kReadAttributeError)) return std::unexpected(inode.error());
    nfs4::Attributes error;
    error.read_attribute_error = inode.error();
    return error;
  }
  if ((*inode)->is_directory()) {
    if (const Export* crossed = services.exports.at(entry.inode)) through = crossed;
  }
  return attribute_values(services, *through, **inode, requested);
}

bool visible(const CompoundContext& context, const DirectoryEntry& entry) {
  return context.current.handle->export_id != Exports::kPseudoId ||
         context.services.exports.leads_to_export(entry.inode);
}

// Adds entries of one page as long as they fit into `room` bytes, which shrinks. False: the reply is full.
Outcome<bool> add_entries(const CompoundContext& context, const DirectoryPage& page,
                          const nfs4::Bitmap& requested, size_t& room, nfs4::ReadDirectoryResult& result) {
  for (const DirectoryEntry& from : page.entries) {
    if (!visible(context, from)) continue;
    nfs4::DirectoryEntry entry{.cookie = from.cookie, .name = from.name, .attributes = {}};
    TRY_ASSIGN(entry.attributes, entry_attributes(context, from, requested));
    const size_t size = 4 + xdr::encoded_size(entry);
    if (size > room) return false;
    room -= size;
    result.entries.push_back(std::move(entry));
  }
  return true;
}

}  // namespace

// RFC 8881, 18.23. dircount is a hint, and maxcount already bounds the reply.
nfs4::ReadDirectoryResponse handle(CompoundContext& context, const nfs4::ReadDirectoryArguments& arguments) {
  TRY_ASSIGN(const InodePointer directory, context.current_directory());
  TRY(context.check_access(*directory, kMayRead));
  if (!(arguments.requested & write_only_attributes()).none()) return Status::kInval;
  if (arguments.cookie == 1 || arguments.cookie == 2) return Status::kBadCookie;
  const nfs4::Verifier verifier = Namespace::cookie_verifier(*directory);
  if (arguments.cookie != 0 && arguments.cookie_verifier != verifier) return Status::kNotSame;

  const size_t most = std::min(arguments.max_count, context.reply_room);
  if (most < kFixedBytes) return Status::kTooSmall;
  size_t room = most - kFixedBytes;
  nfs4::ReadDirectoryResult result;
  result.cookie_verifier = verifier;
  bool more = true;
  for (uint64_t cookie = arguments.cookie; more && !result.end;) {
    TRY_ASSIGN(const DirectoryPage page,
               context.services.names.read_directory(directory->id, cookie, kPageEntries));
    TRY_ASSIGN(more, add_entries(context, page, arguments.requested, room, result));
    if (more) result.end = page.end;
    if (!page.entries.empty()) cookie = page.entries.back().cookie;
  }
  // Not even one entry fits.
  if (result.entries.empty() && !result.end) return Status::kTooSmall;
  return result;
}

}  // namespace pnfsrdma::mds
