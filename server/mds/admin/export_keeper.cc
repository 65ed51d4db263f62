// SPDX-License-Identifier: Apache-2.0
#include "server/mds/admin/export_keeper.h"

#include <algorithm>
#include <cerrno>
#include <map>

#include "server/mds/admin/config.h"
#include "server/mds/meta/keys.h"
#include "server/mds/meta/values.h"
#include "shared/base/log.h"
#include "shared/nfs4/snapshot_list.h"

namespace pnfsrdma::mds {

namespace {

constexpr std::string_view kNextKey = "next";
constexpr size_t kExportsMax = 1000;
constexpr size_t kNetworksMax = 256;

// Version 1 had no flags: none was set.
constexpr uint32_t kExportVersion = 2;
constexpr uint32_t kInsecure = 1;
constexpr uint32_t kManageGids = 2;
struct StoredExport {
  uint32_t id = 0;
  xdr::String<4096> path;
  bool read_only = false;
  uint32_t squash = 0;
  uint32_t anonuid = 0;
  uint32_t anongid = 0;
  xdr::List<xdr::String<64>, kNetworksMax> clients;
};
struct StoredExport2 {
  StoredExport base;
  uint32_t flags = 0;  // kInsecure, kManageGids
};

std::string key_of(uint16_t id) {
  std::byte bytes[sizeof id];
  store_big_endian(bytes, id);
  return std::string(as_text(bytes));
}

template <typename T>
void put(Batch& batch, std::string_view key, const T& value, uint32_t version = kValueVersion) {
  put_value(batch, record_key(static_cast<uint8_t>(RecordKind::kExport), key), value, version);
}

uint32_t flags_of(const Export& item) {
  return (item.insecure ? kInsecure : 0) | (item.manage_gids ? kManageGids : 0);
}

void put(Batch& batch, const Export& item) {
  StoredExport stored{.id = item.id,
                      .path = item.path,
                      .read_only = item.read_only,
                      .squash = static_cast<uint32_t>(item.squash),
                      .anonuid = item.anonuid,
                      .anongid = item.anongid,
                      .clients = {}};
  for (const Network& network : item.clients) stored.clients.push_back(network.text());
  put(batch, key_of(item.id), StoredExport2{stored, flags_of(item)}, kExportVersion);
}

Result<StoredExport2> read_stored(std::string_view value) {
  if (value_version(value) != kValueVersion)
    return read_value<StoredExport2>(value, "an export", kExportVersion);
  TRY_ASSIGN(StoredExport first, read_value<StoredExport>(value, "an export"));
  return StoredExport2{std::move(first), 0};
}

Result<Export> read_export(std::string_view value) {
  TRY_ASSIGN(const StoredExport2 whole, read_stored(value));
  const StoredExport& stored = whole.base;
  if ((whole.flags & ~(kInsecure | kManageGids)) != 0 || stored.id == 0 || stored.id > UINT16_MAX ||
      stored.squash > static_cast<uint32_t>(Squash::kAll) || !is_normal_path(stored.path))
    return fail(EUCLEAN, "the metadata store has an invalid export");
  Export item{.id = static_cast<uint16_t>(stored.id),
              .path = stored.path,
              .read_only = stored.read_only,
              .squash = static_cast<Squash>(stored.squash),
              .anonuid = stored.anonuid,
              .anongid = stored.anongid,
              .insecure = (whole.flags & kInsecure) != 0,
              .manage_gids = (whole.flags & kManageGids) != 0,
              .clients = {}};
  for (const auto& text : stored.clients) {
    TRY_ASSIGN(Network network, Network::parse(text));
    item.clients.push_back(std::move(network));
  }
  return item;
}

// EINVAL saying what is wrong.
Result<Export> parse(const console::ExportRules& rules) {
  if (!is_normal_path(rules.path))
    return fail(EINVAL, "path must be absolute, without empty, \".\" or \"..\" parts");
  if (rules.path.find('\0') != std::string::npos) return fail(EINVAL, "path must not contain NUL");
  Export item{.path = rules.path,
              .read_only = rules.read_only,
              .squash = rules.all_squash    ? Squash::kAll
                        : rules.root_squash ? Squash::kRoot
                                            : Squash::kNone,
              .anonuid = rules.anonuid,
              .anongid = rules.anongid,
              .insecure = rules.insecure,
              .manage_gids = rules.manage_gids,
              .clients = {}};
  if (rules.clients.size() > kNetworksMax) return fail(EINVAL, "clients must have at most 256 networks");
  for (const std::string& text : rules.clients) {
    TRY_ASSIGN(Network network, Network::parse(text));
    item.clients.push_back(std::move(network));
  }
  return item;
}

// What an export costs the one it is made in.
std::string text_of(const console::ExportEffect& effect, const std::string& path) {
  constexpr size_t kNamed = 10;
  const std::string& around = effect.inside;
  std::string text = "Clients of " + around + " must reopen their files: their filehandles may lead into " +
                     path + ", and end. " + std::to_string(effect.clients) +
                     (effect.clients == 1 ? " client has " : " clients have ") + around + " mounted now";
  if (effect.losing.empty()) return text + "; all of them may mount " + path + ".";
  text += "; " + std::to_string(effect.losing.size()) + " of them may not mount " + path +
          ", and will no longer find it: ";
  for (size_t i = 0; i < std::min(effect.losing.size(), kNamed); ++i)
    text += (i == 0 ? "" : ", ") + effect.losing[i];
  return text + (effect.losing.size() > kNamed ? ", …" : "") + ".";
}

// As a whole part.
bool names_snapshots(const std::string& path) {
  return (path + "/").find("/" + std::string(nfs4::kSnapshotListName) + "/") != std::string::npos;
}

bool same_networks(const Export& one, const Export& other) {
  return std::ranges::equal(one.clients, other.clients, {}, &Network::text, &Network::text);
}

// Whether somebody may do less under `after` than under `before`.
bool narrower(const Export& before, const Export& after) {
  return (after.read_only && !before.read_only) || (before.insecure && !after.insecure) ||
         !same_networks(before, after) || after.squash > before.squash || before.anonuid != after.anonuid ||
         before.anongid != after.anongid || before.manage_gids != after.manage_gids;
}

}  // namespace

ExportKeeper::ExportKeeper(KeyValueStore& store, Exports& exports, HandleKeys& handles, Effects effects,
                           Mounted mounted)
    : store_(store),
      exports_(exports),
      handles_(handles),
      effects_(std::move(effects)),
      mounted_(std::move(mounted)) {
  const auto next = Records(store).get(RecordKind::kExport, kNextKey);
  stored_ = next && next->has_value();
}

Result<ExportKeeper::Initial> ExportKeeper::initial(KeyValueStore& store, std::vector<Export> configured) {
  Records records(store);
  TRY_ASSIGN(const auto next, records.get(RecordKind::kExport, kNextKey));
  if (!next) return Initial{.exports = std::move(configured), .next_id = 1, .stored = false};
  // Of the file's exports this alone counts still.
  std::map<std::string, std::optional<WallTime>> old_handles_until;
  for (const Export& item : configured) old_handles_until[item.path] = item.old_handles_until;
  TRY_ASSIGN(const StoredNumber number, read_value<StoredNumber>(*next, "the next export's number"));
  Initial found{.exports = {}, .next_id = static_cast<uint16_t>(number.number), .stored = true};
  Result<> outcome;
  TRY(records.scan(RecordKind::kExport, [&](std::string_view key, std::string_view value) {
    if (key == kNextKey) return true;
    auto item = read_export(value);
    if (!item) outcome = std::unexpected(item.error());
    if (item) item->old_handles_until = old_handles_until[item->path];
    if (item) found.exports.push_back(std::move(*item));
    return outcome.has_value();
  }));
  TRY(outcome);
  return found;
}

console::Export ExportKeeper::shown(const Export& item) const {
  console::Export shown{.id = item.id,
                        .rules = {.path = item.path,
                                  .read_only = item.read_only,
                                  .root_squash = item.squash != Squash::kNone,
                                  .all_squash = item.squash == Squash::kAll,
                                  .anonuid = item.anonuid,
                                  .anongid = item.anongid,
                                  .insecure = item.insecure,
                                  .manage_gids = item.manage_gids,
                                  .clients = {}},
                        .stored = stored_,
                        .directory_exists = exports_.directory_exists(item)};
  for (const Network& network : item.clients) shown.rules.clients.push_back(network.text());
  return shown;
}

std::vector<console::Export> ExportKeeper::all() const {
  std::vector<console::Export> all;
  for (const Export* item : exports_.all()) all.push_back(shown(*item));
  return all;
}

std::string ExportKeeper::text() const {
  std::vector<Export> all;
  for (const Export* item : exports_.all()) all.push_back(*item);
  return exports_to_json(all);
}

Batch ExportKeeper::begin() const {
  Batch batch;
  if (stored_) return batch;
  for (const Export* item : exports_.all()) put(batch, *item);
  put(batch, kNextKey, StoredNumber{exports_.next_id()});
  return batch;
}

void ExportKeeper::effect(const console::ExportRules& rules, Done<console::ExportEffect> done) const {
  const auto item = parse(rules);
  if (!item) return done(std::unexpected(item.error()));
  effect_of(*item, [done = std::move(done)](const console::ExportEffect& effect) { done(effect); });
}

// Exports may change before the last client has been looked at: it has its own of those it compares.
void ExportKeeper::effect_of(const Export& added,
                             std::function<void(const console::ExportEffect&)> done) const {
  const Export* const around = exports_.around(added);
  if (around == nullptr) return done({});
  struct Work {
    const Export around;
    const Export added;
    console::ExportEffect effect;
  };
  const auto work = std::make_shared<Work>(Work{.around = *around, .added = added, .effect = {}});
  work->effect.inside = around->path;
  mounted_(
      [work](const MountedClient& client) {
        if (!work->around.admits(client.host)) return;
        ++work->effect.clients;
        if (!work->added.admits(client.host)) work->effect.losing.push_back(client.name);
      },
      [work, done = std::move(done)] {
        work->effect.text = text_of(work->effect, work->added.path);
        done(work->effect);
      });
}

Result<> ExportKeeper::may_add(const Export& item) const {
  if (const Export* there = exports_.find_path(item.path))
    return fail(EEXIST, item.path + " is export " + std::to_string(there->id) + " already");
  if (names_snapshots(item.path))
    return fail(EINVAL, item.path + ": .snapshots leads to the snapshots, which every export shows");
  if (exports_.next_id() == 0 || exports_.size() >= kExportsMax)
    return fail(EBUSY, "there are too many exports (1000 at a time, 65535 ever)");
  return {};
}

void ExportKeeper::add(const console::ExportRules& rules, Done<console::Export> done) {
  auto item = parse(rules);
  if (!item) return done(std::unexpected(item.error()));
  if (const auto may = may_add(*item); !may) return done(std::unexpected(may.error()));
  effect_of(*item, [this, item = *item, done = std::move(done)](const console::ExportEffect& effect) {
    add(item, effect, done);
  });
}

void ExportKeeper::add(Export item, const console::ExportEffect& effect, const Done<console::Export>& done) {
  // It took turns of the loop to know the effect: others may have been quicker.
  if (const auto may = may_add(item); !may) return done(std::unexpected(may.error()));
  const Export* around = exports_.around(item);
  if ((around == nullptr ? "" : around->path) != effect.inside)
    return effect_of(item,
                     [this, item, done](const console::ExportEffect& again) { add(item, again, done); });
  item.id = exports_.next_id();
  Batch batch = begin();
  put(batch, item);
  put(batch, kNextKey, StoredNumber{static_cast<uint16_t>(item.id + 1)});
  const uint16_t id = item.id;
  const auto keys = handles_.prepare_add(batch, item, around);
  const std::string warning = effect.text;
  if (around != nullptr)
    log_warning("mds", "handles-end export={} clients={} losing={} why=\"{}\"", around->path, effect.clients,
                effect.losing.size(), warning);
  commit(
      batch,
      [&] {
        // By the names clients know their files by, while these are good.
        if (around != nullptr) effects_.narrowed(around->id);
        handles_.apply(keys);
        exports_.add(std::move(item));
        if (around != nullptr) effects_.handles_ended();
      },
      [this, id, warning, done](Result<> stored) {
        answer(id, std::move(stored), [&](Result<console::Export> made) {
          if (made) made->warning = warning;
          done(std::move(made));
        });
      });
}

void ExportKeeper::change(uint16_t id, const console::ExportRules& rules, Done<console::Export> done) {
  const Export* before = exports_.find(id);
  if (before == nullptr || id == Exports::kPseudoId)
    return done(fail(ENOENT, "there is no export " + std::to_string(id)));
  auto item = parse(rules);
  if (!item) return done(std::unexpected(item.error()));
  if (item->path != before->path)
    return done(fail(EINVAL, "the path of an export cannot change: remove this one and create another"));
  item->id = id;
  const bool less = narrower(*before, *item);
  Batch batch = begin();
  put(batch, *item);
  commit(
      batch,
      [&] {
        exports_.change(*item);
        if (less) effects_.narrowed(id);
      },
      [this, id, done](Result<> stored) { answer(id, std::move(stored), done); });
}

void ExportKeeper::remove(uint16_t id, Done<void> done) {
  if (id == Exports::kPseudoId || exports_.find(id) == nullptr)
    return done(fail(ENOENT, "there is no export " + std::to_string(id)));
  Batch batch = begin();
  Records::erase(batch, RecordKind::kExport, key_of(id));
  const auto keys = handles_.prepare_remove(batch, *exports_.find(id));
  commit(
      batch,
      [&] {
        handles_.apply(keys);
        exports_.remove(id);
        effects_.handles_ended();
      },
      done);
}

// In force as soon as it is in the engine, answered when it is durable: what is lost between the two nobody
// was told of.
void ExportKeeper::commit(const Batch& batch, const std::function<void()>& apply, Done<void> done) {
  const auto committed = store_.commit(batch, CommitKind::kNamespace);
  if (!committed) return done(std::unexpected(committed.error()));
  stored_ = true;
  apply();
  store_.when_synced(*committed, [done = std::move(done)] { done({}); });
}

void ExportKeeper::answer(uint16_t id, Result<> stored, const Done<console::Export>& done) const {
  if (!stored) return done(std::unexpected(stored.error()));
  const Export* now = exports_.find(id);
  if (now == nullptr) return done(fail(ENOENT, "it was removed meanwhile"));
  done(shown(*now));
}

}  // namespace pnfsrdma::mds
