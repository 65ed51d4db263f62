// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "server/mds/ops/attribute_values.h"
#include "server/mds/ops/handlers.h"
#include "server/mds/ops/held_attributes.h"
#include "shared/xdr/codec.h"

namespace pnfsrdma::mds {

using nfs4::Status;

namespace {

// Rows read at once: as many as there is room for, by the bytes that an entry with the attributes of `ls -l` takes.
inline constexpr size_t kPageEntriesMin = 16;
inline constexpr size_t kPageEntriesMax = 128;
inline constexpr size_t kEntryBytesUsual = 160;
// cookieverf, the end of the list, eof.
inline constexpr size_t kFixedBytes = 8 + 4 + 4;

// Whose attributes an entry shows. Where it is the directory of another export, that one's (the client sees a
// mount point), or those of the pseudo file system if that one does not admit the client or its port.
struct Shown {
  InodePointer inode;
  uint16_t through = 0;
};
Outcome<Shown> shown_by_entry(const CompoundContext& context, InodeId id) {
  const Services& services = context.services;
  TRY_ASSIGN(InodePointer inode, services.names.get(id));
  uint16_t through = context.current.handle->export_id;
  if (inode->is_directory()) {
    through = services.exports.seen_through(through, id, context.peer_host()).value_or(Exports::kPseudoId);
    if (!context.serves_port(*services.exports.find_accepted(through))) through = Exports::kPseudoId;
  }
  if (through == Exports::kPseudoId) inode = context.pseudo_directory(*inode);
  if (inode->is_regular()) inode = as_its_holder_said(context, inode);
  return Shown{std::move(inode), through};
}

// In the list of snapshots: one that does not have this export's directory yet, or has gone meanwhile, or whose copy of
// the metadata cannot be read: the others can.
bool is_absent(const CompoundContext& context, Status status) {
  const bool in_list = snapshot_of(context.current.handle->inode) == kSnapshotList;
  return in_list && (status == Status::kStale || status == Status::kNoEnt || status == Status::kIo);
}

// One entry4 with the value_follows before it. Where the inode cannot be read, the attributes are rdattr_error
// alone if that was asked for (RFC 8881, 18.23.3).
Outcome<> encode_entry(xdr::Encoder& encoder, const CompoundContext& context, const DirectoryEntry& entry,
                       const WantedAttributes& wanted) {
  if (context.hides(context.current.handle->inode, entry.name)) return {};
  const auto shown = shown_by_entry(context, entry.inode);
  if (!shown && is_absent(context, shown.error())) return {};
  const bool error_told = !shown && wanted.error_wanted() && shown.error() != kSuspended;
  if (!shown && !error_told) return std::unexpected(shown.error());
  const xdr::Encoder::Staging staging(encoder);
  encoder.put_u32(1);
  encoder.put_u64(entry.cookie);
  encoder.put_opaque(as_bytes(entry.name));
  if (shown) {
    const ObjectHandle handle = context.handle_of(*shown->inode, shown->through);
    wanted.encode(encoder, context, handle, *shown->inode);
    if (context.reads.missed()) return std::unexpected(kSuspended);  // an ACL, a count
  } else {
    nfs4::Attributes error;
    error.read_attribute_error = shown.error();
    xdr::encode(encoder, error);
  }
  return {};
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

Outcome<DirectoryPage> read_page(const CompoundContext& context, InodeId directory, uint64_t cookie,
                                 size_t room) {
  if (context.current.handle->export_id == Exports::kPseudoId) return pseudo_page(context, directory, cookie);
  const size_t entries = std::clamp(room / kEntryBytesUsual, kPageEntriesMin, kPageEntriesMax);
  return context.services.names.read_directory(directory, cookie, entries);
}

nfs4::Verifier cookie_verifier(const CompoundContext& context, const Inode& directory) {
  if (context.current.handle->export_id != Exports::kPseudoId) return Namespace::cookie_verifier(directory);
  nfs4::Verifier verifier{};
  store_big_endian(verifier.data(), directory.change);
  return verifier;
}

// How far a listing has come. Kept while the request waits for rows of the store, so that it goes on where it
// was.
struct Listing {
  nfs4::ReadDirectoryResult result;
  uint64_t cookie = 0;
  size_t room = 0;
};

// Adds entries of one page as long as they fit. False: the reply is full. kSuspended: inodes of the page have
// to be fetched, all of them at once; of those before the first one the entries are there.
Outcome<bool> add_entries(const CompoundContext& context, const DirectoryPage& page,
                          const WantedAttributes& wanted, Listing& listing) {
  // An entry is encoded, once, and not kept.
  Bytes& entries = listing.result.entries.encoded;
  entries.reserve(entries.size() + std::min(listing.room, page.entries.size() * kEntryBytesUsual));
  xdr::Encoder encoder(entries);
  for (auto from = page.entries.begin(); from != page.entries.end(); ++from) {
    const size_t before = encoder.position();
    if (const auto encoded = encode_entry(encoder, context, *from, wanted); !encoded) {
      encoder.truncate(before);
      if (encoded.error() == kSuspended)
        std::for_each(from, page.entries.end(), [&](const auto& one) {
          if (const auto inode = context.services.names.get(one.inode)) wanted.read(context, **inode);
        });
      return std::unexpected(encoded.error());
    }
    const size_t size = encoder.position() - before;
    if (size > listing.room) {
      encoder.truncate(before);
      return false;
    }
    listing.room -= size;
    listing.cookie = from->cookie;
  }
  return true;
}

Outcome<> add_pages(const CompoundContext& context, const Inode& directory, const WantedAttributes& wanted,
                    Listing& listing) {
  bool more = true;
  while (more && !listing.result.end) {
    TRY_ASSIGN(const DirectoryPage page, read_page(context, directory.id, listing.cookie, listing.room));
    TRY_ASSIGN(more, add_entries(context, page, wanted, listing));
    if (more) listing.result.end = page.end;
  }
  return {};
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
  Listing listing = context.suspension.take_kept<Listing>().value_or(
      Listing{.result = {.cookie_verifier = verifier, .entries = {}, .end = false},
              .cookie = arguments.cookie,
              .room = most - kFixedBytes});
  const WantedAttributes wanted(context.services, arguments.requested);
  const auto added = add_pages(context, *directory, wanted, listing);
  if (!added && added.error() == kSuspended) context.suspension.keep(std::move(listing));
  TRY(added);
  // Not even one entry fits.
  if (listing.result.entries.encoded.empty() && !listing.result.end) return Status::kTooSmall;
  return std::move(listing.result);
}

}  // namespace pnfsrdma::mds
