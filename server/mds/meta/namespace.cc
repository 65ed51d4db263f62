// SPDX-License-Identifier: Apache-2.0
#include "server/mds/meta/namespace.h"

#include <algorithm>
#include <cerrno>
#include <set>

#include "server/mds/meta/keys.h"
#include "server/mds/meta/namespace_change.h"
#include "server/mds/meta/permissions.h"
#include "server/mds/meta/request_reads.h"
#include "server/mds/meta/values.h"
#include "shared/base/check.h"
#include "shared/base/log.h"

namespace pnfsrdma::mds {
namespace {

using nfs4::Status;

// The boot count stands above this bit of a change value: 2^40 changes of one inode per boot, 2^24 boots.
constexpr unsigned kChangeBits = 40;
constexpr uint64_t kBootCountMax = uint64_t{1} << (64 - kChangeBits);
constexpr size_t kFirstCookiesKept = 4096;  // directories
constexpr uint32_t kNanosecondsPerSecond = 1'000'000'000;

bool sound(const std::optional<WallTime>& time) {
  return !time || time->nanoseconds < kNanosecondsPerSecond;
}

std::unexpected<Status> wire(const Error& error) {
  if (error.number() != kNotAtHand) log_error("meta", "read-failed {}", error.to_string());
  return std::unexpected(status_of(error));
}

}  // namespace

Status status_of(const Error& error) {
  switch (error.number()) {
    case EAGAIN:
      return Status::kDelay;
    case ENOSPC:
      return Status::kNoSpc;
    case EDQUOT:
      return Status::kDQuot;
    case kNotAtHand:
      return kSuspended;
    default:
      return Status::kIo;
  }
}

Namespace::Namespace(KeyValueStore& store, const Clock& clock, Snapshots snapshots, Quotas quotas,
                     uint64_t boot_count, const NamespaceOptions& options)
    : store_(store),
      clock_(clock),
      snapshots_(std::move(snapshots)),
      quotas_(std::move(quotas)),
      boot_count_(boot_count),
      inodes_(options.cached_inodes),
      names_(options.cached_names),
      first_cookies_(kFirstCookiesKept),
      last_names_(options.cached_names) {}

Result<std::unique_ptr<Namespace>> Namespace::open(KeyValueStore& store, const Clock& clock,
                                                   uint64_t boot_count, const NamespaceOptions& options) {
  if (boot_count == 0 || boot_count >= kBootCountMax) return fail(EINVAL, "a boot count out of range");
  TRY_ASSIGN(Snapshots snapshots, Snapshots::open(store));
  std::set<SnapshotNumber> ready;
  for (const auto& [number, snapshot] : snapshots.all()) {
    if (snapshot.is_ready()) ready.insert(number);
  }
  TRY(store.keep_checkpoints(ready));
  TRY_ASSIGN(Quotas quotas, Quotas::open(store));
  std::unique_ptr<Namespace> names(
      new Namespace(store, clock, std::move(snapshots), std::move(quotas), boot_count, options));
  TRY_ASSIGN(const std::optional<std::string> next, store.get(meta_key("next-inode")));
  if (!next) {
    TRY(names->format(options));
    return names;
  }
  TRY_ASSIGN(const StoredNumber reserved, read_value<StoredNumber>(*next, "an inode counter"));
  names->next_inode_ = names->reserved_inodes_ = reserved.number;
  TRY_ASSIGN(const std::optional<std::string> root, store.get(number_key(kInodeTag, kRootInode)));
  if (!root) return fail(EUCLEAN, "the metadata store has no root directory");
  return names;
}

Result<> Namespace::format(const NamespaceOptions& options) {
  next_inode_ = reserved_inodes_ = kRootInode;
  Change change(*this);
  Inode& root = change.add({.type = FileType::kDirectory,
                            .mode = options.root_mode,
                            .uid = options.root_uid,
                            .gid = options.root_gid});
  CHECK(root.id == kRootInode);
  root.nlink = 2;
  root.parent = kRootInode;
  if (!change.commit()) return fail(EIO, "making the root directory in the metadata store");
  return store_.sync();
}

Outcome<InodePointer> Namespace::get(InodeId id) {
  const SnapshotNumber snapshot = snapshot_of(id);
  if (snapshot != 0) {
    TRY(check_visible(id));
    if (snapshot == kSnapshotList) return snapshot_list(id);
  }
  if (const InodePointer* cached = inodes_.find(id)) return *cached;
  const auto stored = store_.get(number_key(kInodeTag, id));
  if (!stored) return wire(stored.error());
  if (!*stored) return std::unexpected(Status::kStale);
  auto inode = read_value<Inode>(**stored, "an inode");
  if (!inode) return wire(inode.error());
  if (snapshot != 0) place_in_snapshot(*inode, snapshot);
  auto pointer = std::make_shared<const Inode>(*std::move(inode));
  inodes_.put(id, pointer);
  return pointer;
}

Outcome<InodePointer> Namespace::get_directory(InodeId id) {
  TRY_ASSIGN(InodePointer inode, get(id));
  if (inode->is_directory()) return inode;
  return std::unexpected(inode->type == FileType::kSymlink ? Status::kSymlink : Status::kNotDir);
}

Outcome<std::optional<NameEntry>> Namespace::find(InodeId directory, std::string_view name) {
  if (const NameEntry* cached = names_.find(NameView{directory, name})) return *cached;
  const auto stored = store_.get(name_key(directory, name));
  if (!stored) return wire(stored.error());
  if (!*stored) return std::nullopt;
  auto entry = read_value<NameEntry>(**stored, "a directory entry");
  if (!entry) return wire(entry.error());
  if (const SnapshotNumber snapshot = snapshot_of(directory)) entry->inode = inode_in(snapshot, entry->inode);
  names_.put(NameKey{directory, std::string(name)}, *entry);
  last_names_.put(entry->inode, NameKey{directory, std::string(name)});
  return *entry;
}

std::optional<std::string> Namespace::last_path(InodeId id) {
  const SnapshotNumber number = snapshot_of(id);
  if (number == kSnapshotList) {
    const auto above = names_down_to(kRootInode, live_inode(id));
    return above ? std::optional(*above + "/.snapshots") : std::nullopt;
  }
  auto path = names_down_to(inode_in(number, kRootInode), id);
  if (!path) return std::nullopt;
  if (number != 0) {
    const Snapshot* snapshot = snapshots_.find(number);
    if (snapshot == nullptr) return std::nullopt;
    path->insert(0, "/.snapshots/" + snapshot->name);
  }
  return path->empty() ? "/" : path;
}

std::optional<std::string> Namespace::names_down_to(InodeId root, InodeId id) {
  // No path a client can make is deeper.
  constexpr int kDepthMax = 4096;
  RequestReads reads(store_);
  const RequestReads::Run in_memory(reads);
  std::string path;
  for (int depth = 0; depth < kDepthMax; ++depth) {
    if (id == root) return path;
    const NameKey* last = last_names_.find(id);
    if (last == nullptr) return std::nullopt;
    const NameKey name = *last;
    const auto entry = find(name.directory, name.name);
    if (!entry || !*entry || (*entry)->inode != id) return std::nullopt;
    path.insert(0, "/" + name.name);
    id = name.directory;
  }
  return std::nullopt;
}

Outcome<> Namespace::check_name(std::string_view name) {
  if (name.empty()) return std::unexpected(Status::kInval);
  if (name.size() > kNameBytesMax) return std::unexpected(Status::kNameTooLong);
  if (name == "." || name == "..") return std::unexpected(Status::kBadName);
  const bool separator = std::ranges::any_of(name, [](char c) { return c == '/' || c == '\0'; });
  if (separator) return std::unexpected(Status::kBadChar);
  return {};
}

Outcome<InodePointer> Namespace::lookup(InodeId directory, std::string_view name) {
  TRY(get_directory(directory));
  TRY(check_name(name));
  if (snapshot_of(directory) == kSnapshotList) return lookup_snapshot(directory, name);
  TRY_ASSIGN(const std::optional<NameEntry> entry, find(directory, name));
  if (!entry) return std::unexpected(Status::kNoEnt);
  return get(entry->inode);
}

Outcome<InodePointer> Namespace::lookup_parent(InodeId directory) {
  TRY_ASSIGN(const InodePointer inode, get_directory(directory));
  if (inode->parent == inode->id) return std::unexpected(Status::kNoEnt);
  return get(inode->parent);
}

Outcome<DirectoryPage> Namespace::read_directory(InodeId directory, uint64_t cookie, size_t limit) {
  TRY_ASSIGN(const InodePointer inode, get_directory(directory));
  if (cookie == 1 || cookie == 2) return std::unexpected(Status::kBadCookie);
  const SnapshotNumber snapshot = snapshot_of(directory);
  if (snapshot == kSnapshotList) return read_snapshot_list(directory, cookie, limit);
  DirectoryPage page{.entries = {}, .end = true};
  // Nothing there, or nothing behind: deletions alone, which need not be walked.
  if (inode->size == 0 || cookie >= inode->next_cookie - 1) return page;
  const uint64_t* known = first_cookies_.find(directory);
  const uint64_t first = known != nullptr ? *known : kFirstCookie;
  const uint64_t from = std::max(cookie + 1, first);
  Result<> outcome;
  const auto visit = [&](std::string_view key, std::string_view value) {
    if (page.entries.size() == limit) {
      page.end = false;
      return false;
    }
    auto stored = read_value<StoredCookie>(value, "a directory cookie");
    if (!stored) {
      outcome = std::unexpected(stored.error());
      return false;
    }
    const uint64_t place = numbers_of_key(kCookieTag, key).value_or(KeyNumbers{}).second;
    const InodeId inside = inode_in(snapshot, stored->inode);
    page.entries.push_back({place, std::move(stored->name), inside, stored->type});
    return true;
  };
  const auto scanned =
      store_.scan(number_key(kCookieTag, directory), number_key(kCookieTag, directory, from), visit);
  if (!scanned) return wire(scanned.error());
  if (!outcome) return wire(outcome.error());
  if (from == first && !page.entries.empty()) first_cookies_.put(directory, page.entries.front().cookie);
  return page;
}

ExclusiveVerifier Namespace::cookie_verifier(const Inode& directory) {
  // Cookies never become invalid, so it only has to tell directories of one number apart, if ever there were
  // two.
  ExclusiveVerifier verifier{};
  store_big_endian(verifier.data(), directory.generation);
  return verifier;
}

Outcome<InodePointer> Namespace::update(InodeId id, const InodeUpdate& what, const Batch& extra,
                                        CommitKind kind) {
  if (snapshot_of(id) != 0) return std::unexpected(Status::kRoFs);
  TRY_ASSIGN(const InodePointer present, get(id));
  if (!sound(what.atime) || !sound(what.mtime) || !sound(what.created))
    return std::unexpected(Status::kInval);
  if (what.size && !present->is_regular()) return std::unexpected(Status::kInval);
  if (what.size.value_or(0) > kFileSizeMax) return std::unexpected(Status::kFBig);
  Change change(*this);
  Inode& inode = change.edit(present);
  if (what.clear_setid) inode.mode = mode_without_setid(inode);
  if (what.mode) inode.mode = *what.mode & kModeMask;
  if (what.access_acl) change.set_access_acl(inode, *what.access_acl);
  if (what.default_acl) change.set_default_acl(inode, *what.default_acl);
  inode.uid = what.uid.value_or(inode.uid);
  inode.gid = what.gid.value_or(inode.gid);
  inode.size = what.size.value_or(inode.size);
  inode.space_used = what.space_used.value_or(inode.space_used);
  inode.atime = what.atime.value_or(inode.atime);
  inode.mtime = what.mtime.value_or(inode.mtime);
  inode.created = what.created.value_or(inode.created);
  if (what.has_xattrs)
    inode.flags = (inode.flags & ~kInodeHasXattrs) | (*what.has_xattrs ? kInodeHasXattrs : 0);
  if (what.shares) inode.flags |= kInodeShares;
  if (what.by_holder) {
    if (what.mtime) change.touch_with_data(inode);
  } else if (!what.space_only) {
    change.touch(inode);
  }
  change.batch().append(extra);
  TRY(change.commit(kind));
  return change.result(id);
}

Outcome<AclEntries> Namespace::stored_acl(const Inode& inode, AclKind kind) {
  const auto bytes = store_.get(acl_key(inode.id, kind));
  if (!bytes) return wire(bytes.error());
  if (!*bytes) return std::unexpected(Status::kIo);
  auto stored = read_value<StoredAcl>(**bytes, "an ACL");
  if (!stored) return wire(stored.error());
  return AclEntries(std::move(stored->entries));
}

Outcome<PosixAcl> Namespace::access_acl(const Inode& inode) {
  if ((inode.flags & kInodeHasAccessAcl) == 0) return PosixAcl::of_mode(inode.mode);
  TRY_ASSIGN(AclEntries stored, stored_acl(inode, AclKind::kAccess));
  auto acl = PosixAcl::of_stored(std::move(stored), inode.mode);
  if (!acl) return std::unexpected(Status::kIo);
  return *std::move(acl);
}

Outcome<PosixAcl> Namespace::default_acl(const Inode& inode) {
  if ((inode.flags & kInodeHasDefaultAcl) == 0) return PosixAcl();
  TRY_ASSIGN(AclEntries stored, stored_acl(inode, AclKind::kDefault));
  auto acl = PosixAcl::of(std::move(stored));
  if (!acl) return std::unexpected(Status::kIo);
  return *std::move(acl);
}

Outcome<InodePointer> Namespace::touch(InodeId id, std::optional<WallTime> mtime) {
  if (snapshot_of(id) != 0) return get(id);
  return update(id, {.mtime = mtime.value_or(clock_.wall_now())}, {}, CommitKind::kState);
}

Outcome<InodePointer> Namespace::touch_atime(InodeId id) {
  if (snapshot_of(id) != 0) return get(id);
  TRY_ASSIGN(const InodePointer present, get(id));
  Change change(*this);
  change.edit(present).atime = change.now();
  TRY(change.commit(CommitKind::kState));
  return change.result(id);
}

Outcome<std::vector<InodeId>> Namespace::orphans(InodeId from, size_t most) {
  std::vector<InodeId> found;
  const auto visit = [&](std::string_view key, std::string_view) {
    if (const auto inode = number_of_key(kOrphanTag, key)) found.push_back(*inode);
    return found.size() < most;
  };
  const auto scanned = store_.scan(tag_prefix(kOrphanTag), number_key(kOrphanTag, from), visit);
  if (!scanned) return wire(scanned.error());
  return found;
}

Outcome<> Namespace::destroy(InodeId id, const Batch& extra) {
  if (snapshot_of(id) != 0) return std::unexpected(Status::kRoFs);
  TRY_ASSIGN(const InodePointer present, get(id));
  if ((present->flags & kInodeOrphan) == 0) return std::unexpected(Status::kInval);
  Change change(*this);
  change.edit(present);
  change.erase(id);
  change.batch().append(extra);
  change.batch().erase(number_key(kOrphanTag, id));
  change.batch().erase(number_key(kTailTag, id));
  return change.commit();
}

uint64_t Namespace::next_change(const Inode& inode) const {
  return std::max(inode.change, boot_count_ << kChangeBits) + 1;
}

}  // namespace pnfsrdma::mds
