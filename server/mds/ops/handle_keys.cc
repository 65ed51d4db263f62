// SPDX-License-Identifier: Apache-2.0
#include "server/mds/ops/handle_keys.h"

#include <sodium.h>

#include <algorithm>
#include <cerrno>

#include "server/mds/meta/records.h"
#include "server/mds/meta/values.h"
#include "shared/base/log.h"

namespace pnfsrdma::mds {

using nfs4::FileHandle;
using nfs4::Status;

namespace {

inline constexpr uint16_t kOldVersion = 1;
inline constexpr size_t kOldSize = 20;
inline constexpr uint16_t kVersion = 2;
inline constexpr size_t kSize = 32;
inline constexpr size_t kMacAt = 24;
// No path of an export: those begin with "/".
inline constexpr const char* kPseudoPath = "pseudo";

struct StoredKey {
  xdr::FixedOpaque<16> secret{};
  uint32_t key_version = 0;
  bool takes_old = false;
  uint64_t old_until = 0;  // seconds since 1970
};

}  // namespace

struct HandleKeys::Change {
  std::map<uint16_t, Key> put;
  std::vector<uint16_t> removed;
};

namespace {

template <typename Key>
void put_key(Batch& batch, const Key& key) {
  StoredKey stored{.secret = {}, .key_version = key.version, .takes_old = key.old_until.has_value()};
  std::ranges::copy(key.secret, stored.secret.begin());
  if (key.old_until) {
    stored.old_until = static_cast<uint64_t>(std::max<int64_t>(key.old_until->seconds, 0));
  }
  put_value(batch, Records::key(RecordKind::kHandleKey, key.path), stored);
}

}  // namespace

uint64_t HandleKeys::mac_of(const Key& key, ByteSpan bytes) {
  const auto in = [](const std::byte* from) { return reinterpret_cast<const unsigned char*>(from); };
  static_assert(crypto_shorthash_BYTES == sizeof(uint64_t) &&
                crypto_shorthash_KEYBYTES == sizeof(key.secret));
  std::array<std::byte, crypto_shorthash_BYTES> mac;
  crypto_shorthash(reinterpret_cast<unsigned char*>(mac.data()), in(bytes.data()), bytes.size(),
                   in(key.secret.data()));
  return load_big_endian<uint64_t>(mac.data());
}

HandleKeys::Key HandleKeys::make(const std::string& path) {
  Key key;
  key.path = path;
  random_.fill(key.secret);
  return key;
}

Result<std::map<std::string, HandleKeys::Key>> HandleKeys::stored() const {
  std::map<std::string, Key> keys;
  Result<> outcome;
  TRY(Records(store_).scan(RecordKind::kHandleKey, [&](std::string_view path, std::string_view value) {
    const auto stored = read_value<StoredKey>(value, "a key of filehandles");
    if (!stored) {
      outcome = std::unexpected(stored.error());
      return false;
    }
    Key key;
    key.path = path;
    std::ranges::copy(stored->secret, key.secret.begin());
    key.version = stored->key_version;
    if (stored->takes_old) key.old_until = WallTime{.seconds = static_cast<int64_t>(stored->old_until)};
    keys.emplace(key.path, std::move(key));
    return true;
  }));
  TRY(outcome);
  return keys;
}

Result<std::unique_ptr<HandleKeys>> HandleKeys::open(KeyValueStore& store, Random& random, const Clock& clock,
                                                     const Exports& exports, bool served_before) {
  std::unique_ptr<HandleKeys> made(new HandleKeys(store, random, clock));
  TRY_ASSIGN(auto known, made->stored());
  // The first start of this kind: whatever is exported now was, as far as anybody knows.
  const bool upgraded = known.empty() && served_before;
  const bool first = known.empty();
  Batch batch;
  std::vector<const Export*> fresh;
  const auto take = [&](uint16_t id, const std::string& path, const Export* item) {
    auto found = known.extract(path);
    if (!found.empty()) {
      made->keys_[id] = std::move(found.mapped());
    } else {
      made->keys_[id] = made->make(path);
      if (upgraded) made->keys_[id].old_until = clock.wall_now();
      if (upgraded) made->keys_[id].old_until->seconds += std::chrono::seconds(kOldHandlesAccepted).count();
      put_key(batch, made->keys_[id]);
      if (item != nullptr) fresh.push_back(item);
    }
  };
  take(Exports::kPseudoId, kPseudoPath, nullptr);
  for (const Export* item : exports.all()) {
    take(item->id, item->path, item);
    if (!item->old_handles_until || !made->keys_[item->id].old_until) continue;
    made->keys_[item->id].old_until = *item->old_handles_until;
  }
  for (const Export* item : fresh) {
    const Export* around = first ? nullptr : exports.around(*item);
    if (around == nullptr || std::ranges::find(fresh, around) != fresh.end()) continue;
    Key& outer = made->keys_[around->id];
    ++outer.version;
    put_key(batch, outer);
    log_warning("mds", "handles-end export={} why=\"{} is now a separate export\"", around->path, item->path);
  }
  // Of exports that are gone: one that comes back is another.
  for (const auto& [path, key] : known) Records::erase(batch, RecordKind::kHandleKey, path);
  if (!batch.empty()) TRY(store.commit(batch, CommitKind::kNamespace));
  return made;
}

FileHandle HandleKeys::encode(const ObjectHandle& handle) const {
  if (handle.old) {
    FileHandle bytes(kOldSize);
    store_big_endian(bytes.data(), kOldVersion);
    store_big_endian(bytes.data() + 2, handle.export_id);
    store_big_endian(bytes.data() + 4, handle.inode);
    store_big_endian(bytes.data() + 12, handle.generation);
    return bytes;
  }
  FileHandle bytes(kSize);
  const auto key = keys_.find(handle.export_id);
  // Of an export removed earlier in this COMPOUND: stale when it comes back, whatever its MAC.
  const Key none;
  const Key& used = key == keys_.end() ? none : key->second;
  store_big_endian(bytes.data(), kVersion);
  store_big_endian(bytes.data() + 2, handle.export_id);
  store_big_endian(bytes.data() + 4, used.version);
  store_big_endian(bytes.data() + 8, handle.inode);
  store_big_endian(bytes.data() + 16, handle.generation);
  store_big_endian(bytes.data() + kMacAt, mac_of(used, ByteSpan(bytes.data(), kMacAt)));
  return bytes;
}

std::expected<HandleKeys::Decoded, Status> HandleKeys::decode(const FileHandle& bytes) {
  auto decoded = look_at(bytes);
  if (decoded && decoded->handle.old) ++keys_.at(decoded->handle.export_id).old_uses;
  return decoded;
}

std::expected<HandleKeys::Decoded, Status> HandleKeys::look_at(const FileHandle& bytes) const {
  const uint16_t version = bytes.size() < 4 ? 0 : load_big_endian<uint16_t>(bytes.data());
  const bool old = version == kOldVersion && bytes.size() == kOldSize;
  if (!old && (version != kVersion || bytes.size() != kSize)) return std::unexpected(Status::kBadHandle);
  const auto export_id = load_big_endian<uint16_t>(bytes.data() + 2);
  const auto found = keys_.find(export_id);
  if (found == keys_.end()) return std::unexpected(Status::kStale);
  const Key& key = found->second;
  if (old) {
    if (!key.old_until || *key.old_until <= clock_.wall_now()) return std::unexpected(Status::kStale);
    return Decoded{{.export_id = export_id,
                    .inode = load_big_endian<uint64_t>(bytes.data() + 4),
                    .generation = load_big_endian<uint64_t>(bytes.data() + 12),
                    .old = true}};
  }
  if (load_big_endian<uint64_t>(bytes.data() + kMacAt) != mac_of(key, ByteSpan(bytes.data(), kMacAt)))
    return std::unexpected(Status::kBadHandle);
  return Decoded{.handle = {.export_id = export_id,
                            .inode = load_big_endian<uint64_t>(bytes.data() + 8),
                            .generation = load_big_endian<uint64_t>(bytes.data() + 16)},
                 .superseded = load_big_endian<uint32_t>(bytes.data() + 4) != key.version};
}

std::shared_ptr<HandleKeys::Change> HandleKeys::prepare_add(Batch& batch, const Export& added,
                                                            const Export* around) {
  auto change = std::make_shared<Change>();
  change->put[added.id] = make(added.path);
  if (around != nullptr) {
    Key outer = keys_.at(around->id);
    ++outer.version;
    change->put[around->id] = std::move(outer);
  }
  for (const auto& [id, key] : change->put) put_key(batch, key);
  return change;
}

std::shared_ptr<HandleKeys::Change> HandleKeys::prepare_remove(Batch& batch, const Export& removed) {
  auto change = std::make_shared<Change>();
  change->removed.push_back(removed.id);
  Records::erase(batch, RecordKind::kHandleKey, removed.path);
  return change;
}

void HandleKeys::apply(const std::shared_ptr<Change>& change) {
  for (auto& [id, key] : change->put) keys_[id] = std::move(key);
  for (const uint16_t id : change->removed) keys_.erase(id);
}

std::vector<HandleKeys::OldHandles> HandleKeys::old_handles() const {
  std::vector<OldHandles> all;
  for (const auto& [id, key] : keys_) {
    if (!key.old_until || *key.old_until <= clock_.wall_now()) continue;
    all.push_back(
        {.path = id == Exports::kPseudoId ? "/" : key.path, .until = *key.old_until, .uses = key.old_uses});
  }
  return all;
}

}  // namespace pnfsrdma::mds
