// SPDX-License-Identifier: Apache-2.0
#include "server/mds/meta/xattrs.h"

#include <algorithm>

#include "server/mds/meta/keys.h"
#include "server/mds/meta/values.h"

namespace pnfsrdma::mds {

using nfs4::Status;

namespace {

using XattrVector = std::vector<StoredXattr>;

Outcome<> check_xattr_name(std::string_view name) {
  if (name.empty() || name.find('\0') != std::string_view::npos) return std::unexpected(Status::kInval);
  if (name.size() > kNameBytesMax) return std::unexpected(Status::kNameTooLong);
  return {};
}

Outcome<XattrVector> read_xattrs(KeyValueStore& store, const Inode& inode) {
  if ((inode.flags & kInodeHasXattrs) == 0) return XattrVector();
  const auto bytes = store.get(number_key(kXattrTag, inode.id));
  if (!bytes) return std::unexpected(status_of(bytes.error()));
  if (!*bytes) return std::unexpected(Status::kIo);
  auto stored = read_value<StoredXattrs>(**bytes, "extended attributes");
  if (!stored) return std::unexpected(status_of(stored.error()));
  return std::move(stored->all);
}

XattrVector::iterator place_of_xattr(XattrVector& all, std::string_view name) {
  return std::ranges::lower_bound(all, name, {},
                                  [](const StoredXattr& one) -> std::string_view { return one.name; });
}

// listxattr(2) lists 64 KiB of names, "user." in front of each and a zero behind it, and those of two ACLs.
constexpr size_t kListedBytesMax = 65536 - 64;
constexpr size_t kListedBytes = sizeof "user.";

// `added`: a name; what an older program has stored may be more, and may change.
bool fit(const XattrVector& all, bool added) {
  size_t names = 0;
  size_t values = 0;
  for (const StoredXattr& one : all) {
    names += one.name.size();
    values += one.value.size();
  }
  const bool listed = !added || names + all.size() * kListedBytes <= kListedBytesMax;
  return names + values <= kXattrRowBytesMax && listed;
}

Outcome<DirectoryChange> write_xattrs(Namespace& names, const Inode& inode, XattrVector all,
                                      const Batch& extra) {
  const std::string key = number_key(kXattrTag, inode.id);
  const bool any = !all.empty();
  Batch batch;
  batch.append(extra);
  if (any) {
    put_value(batch, key, StoredXattrs{std::move(all)});
  } else {
    batch.erase(key);
  }
  TRY_ASSIGN(const InodePointer changed, names.update(inode.id, {.has_xattrs = any}, batch));
  return DirectoryChange{inode.change, changed->change};
}

}  // namespace

Outcome<Bytes> Xattrs::get(const Inode& inode, std::string_view name) const {
  TRY(check_xattr_name(name));
  TRY_ASSIGN(XattrVector all, read_xattrs(names_.store(), inode));
  const auto at = place_of_xattr(all, name);
  if (at == all.end() || at->name != name) return std::unexpected(Status::kNoXattr);
  return Bytes(at->value.begin(), at->value.end());
}

Outcome<std::vector<std::string>> Xattrs::list(const Inode& inode) const {
  TRY_ASSIGN(const XattrVector all, read_xattrs(names_.store(), inode));
  std::vector<std::string> found;
  found.reserve(all.size());
  for (const StoredXattr& one : all) found.push_back(one.name);
  return found;
}

Outcome<DirectoryChange> Xattrs::set(const Inode& inode, std::string_view name, ByteSpan value,
                                     XattrMode mode, const Batch& extra) {
  if (snapshot_of(inode.id) != 0) return std::unexpected(Status::kRoFs);
  TRY(check_xattr_name(name));
  TRY_ASSIGN(XattrVector all, read_xattrs(names_.store(), inode));
  auto at = place_of_xattr(all, name);
  const bool present = at != all.end() && at->name == name;
  if (present && mode == XattrMode::kCreate) return std::unexpected(Status::kExist);
  if (!present && mode == XattrMode::kReplace) return std::unexpected(Status::kNoXattr);
  if (names_.store().room().full) return std::unexpected(Status::kNoSpc);
  if (!present) at = all.insert(at, StoredXattr{std::string(name), {}});
  at->value.assign(value.begin(), value.end());
  if (!fit(all, !present)) return std::unexpected(Status::kNoSpc);
  return write_xattrs(names_, inode, std::move(all), extra);
}

Outcome<DirectoryChange> Xattrs::remove(const Inode& inode, std::string_view name, const Batch& extra) {
  if (snapshot_of(inode.id) != 0) return std::unexpected(Status::kRoFs);
  TRY(check_xattr_name(name));
  TRY_ASSIGN(XattrVector all, read_xattrs(names_.store(), inode));
  const auto at = place_of_xattr(all, name);
  if (at == all.end() || at->name != name) return std::unexpected(Status::kNoXattr);
  all.erase(at);
  return write_xattrs(names_, inode, std::move(all), extra);
}

}  // namespace pnfsrdma::mds
