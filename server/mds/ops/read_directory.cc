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
// mount point), or those of the pseudo file system if that one does not admit the client or its port; where
// the inode cannot be read, rdattr_error if that was asked for (RFC 8881, 18.23.3).
Outcome<nfs4::Attributes> entry_attributes(const CompoundContext& context, InodeId id,
                                           const nfs4::Bitmap& requested) {
  const Services& services = context.services;
  auto inode = services.names.get(id);
  if (!inode) {
    if (!requested.test(nfs4::Attribute::kReadAttributeError)) return std::unexpected(inode.error());
    nfs4::Attributes error;
    error.read_attribute_error = inode.error();
    return error;
  }
  uint16_t through = context.current.handle->export_id;
  if ((*inode)->is_directory()) {
    through = services.exports.seen_through(through, id, context.peer_host()).value_or(Exports::kPseudoId);
    if (!context.serves_port(*services.exports.find_accepted(through))) through = Exports::kPseudoId;
  }
  if (through == Exports::kPseudoId) inode = context.pseudo_directory(**inode);
  return attribute_values(services, context.handle_of(**inode, through), **inode, requested);
}

// The names on the ways to exports that admit the client, as a page of the directory.
DirectoryPage pseudo_page(const CompoundContext& context, InodeId directory, uint64_t cookie) {
  constexpr uint64_t kCookieFirst = 3;  // 1 and 2 are reserved
  DirectoryPage page{.entries = {}, .end = true};
  uint64_t place = kCookieFirst;
  for (auto& entry : context.services.exports.pseudo_entries(directory, context.peer_host())) {
    if (place > cookie) page.entries.push_back({.cookie = place, .name = entry.name, .inode = entry.inode});
    ++place;
  }
  return page;
}

Outcome<DirectoryPage> read_page(const CompoundContext& context, InodeId directory, uint64_t cookie) {
  if (context.current.handle->export_id == Exports::kPseudoId) return pseudo_page(context, directory, cookie);
  return context.services.names.read_directory(directory, cookie, kPageEntries);
}

nfs4::Verifier cookie_verifier(const CompoundContext& context, const Inode& directory) {
  if (context.current.handle->export_id != Exports::kPseudoId) return Namespace::cookie_verifier(directory);
  nfs4::Verifier verifier{};
  store_big_endian(verifier.data(), directory.change);
  return verifier;
}

// Adds entries of one page as long as they fit into `room` bytes, which shrinks. False: the reply is full.
Outcome<bool> add_entries(const CompoundContext& context, const DirectoryPage& page,
                          const nfs4::Bitmap& requested, size_t& room, nfs4::ReadDirectoryResult& result) {
  // An entry is large: sixty optional attributes, which are better not moved.
  result.entries.reserve(result.entries.size() + page.entries.size());
  for (const DirectoryEntry& from : page.entries) {
    nfs4::DirectoryEntry& entry = result.entries.emplace_back();
    entry.cookie = from.cookie;
    entry.name = from.name;
    TRY_ASSIGN(entry.attributes, entry_attributes(context, from.inode, requested));
    const size_t size = 4 + xdr::encoded_size(entry);
    if (size > room) {
      result.entries.pop_back();
      return false;
    }
    room -= size;
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
  const nfs4::Verifier verifier = cookie_verifier(context, *directory);
  if (arguments.cookie != 0 && arguments.cookie_verifier != verifier) return Status::kNotSame;

  const size_t most = std::min(arguments.max_count, context.reply_room);
  if (most < kFixedBytes) return Status::kTooSmall;
  size_t room = most - kFixedBytes;
  nfs4::ReadDirectoryResult result;
  result.cookie_verifier = verifier;
  bool more = true;
  for (uint64_t cookie = arguments.cookie; more && !result.end;) {
    TRY_ASSIGN(const DirectoryPage page, read_page(context, directory->id, cookie));
    TRY_ASSIGN(more, add_entries(context, page, arguments.requested, room, result));
    if (more) result.end = page.end;
    if (!page.entries.empty()) cookie = page.entries.back().cookie;
  }
  // Not even one entry fits.
  if (result.entries.empty() && !result.end) return Status::kTooSmall;
  return result;
}

}  // namespace pnfsrdma::mds
