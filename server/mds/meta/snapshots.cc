// SPDX-License-Identifier: Apache-2.0
#include "server/mds/meta/snapshots.h"

#include <algorithm>
#include <cerrno>

#include "server/mds/meta/format_version.h"
#include "server/mds/meta/keys.h"
#include "server/mds/meta/values.h"

namespace pnfsrdma::mds {
namespace {

constexpr std::string_view kLastKey = "snapshot";

void put_snapshot(Batch& batch, const Snapshot& snapshot) {
  const std::string key = number_key(kSnapshotTag, snapshot.number);
  const StoredSnapshot plain{.name = snapshot.name, .created = snapshot.created, .state = snapshot.state};
  if (snapshot.schedule == SnapshotClass::kNone && !snapshot.pinned) return put_value(batch, key, plain);
  put_value(batch, key,
            StoredMarkedSnapshot{.snapshot = plain, .schedule = snapshot.schedule, .pinned = snapshot.pinned},
            kMarkedVersion);
}

}  // namespace

bool is_snapshot_name(std::string_view name) {
  if (name.empty() || name.size() > kNameBytesMax || name == "." || name == "..") return false;
  return std::ranges::none_of(
      name, [](unsigned char c) { return c == '/' || c == '"' || c == '\\' || c < ' ' || c == 0x7F; });
}

Result<Snapshot> read_snapshot(SnapshotNumber number, std::string_view value) {
  StoredMarkedSnapshot stored;
  if (value_version(value) == kMarkedVersion) {
    TRY_ASSIGN(stored, read_value<StoredMarkedSnapshot>(value, "a snapshot", kMarkedVersion));
  } else {
    TRY_ASSIGN(stored.snapshot, read_value<StoredSnapshot>(value, "a snapshot"));
  }
  return Snapshot{.number = number,
                  .name = std::move(stored.snapshot.name),
                  .created = stored.snapshot.created,
                  .state = stored.snapshot.state,
                  .schedule = stored.schedule,
                  .pinned = stored.pinned};
}

Result<Snapshots> Snapshots::open(KeyValueStore& store) {
  Snapshots snapshots(store);
  TRY_ASSIGN(const std::optional<std::string> last, store.get(meta_key(kLastKey)));
  if (!last) return snapshots;
  TRY_ASSIGN(const StoredNumber number, read_value<StoredNumber>(*last, "the last snapshot's number"));
  snapshots.last_ = static_cast<SnapshotNumber>(number.number);
  Result<> outcome;
  const auto visit = [&](std::string_view key, std::string_view value) {
    const uint64_t place = number_of_key(kSnapshotTag, key).value_or(0);
    auto stored = read_snapshot(static_cast<SnapshotNumber>(place), value);
    if (stored && (place == 0 || place > snapshots.last_))
      stored = fail(EUCLEAN, "the metadata store has an impossible snapshot");
    if (!stored) {
      outcome = std::unexpected(stored.error());
      return false;
    }
    snapshots.all_[stored->number] = *std::move(stored);
    return true;
  };
  TRY(store.scan(tag_prefix(kSnapshotTag), {}, visit));
  TRY(outcome);
  return snapshots;
}

const Snapshot* Snapshots::find(SnapshotNumber number) const {
  const auto found = all_.find(number);
  return found == all_.end() ? nullptr : &found->second;
}

const Snapshot* Snapshots::find(std::string_view name) const {
  const auto found = std::ranges::find_if(all_, [&](const auto& one) {
    return one.second.name == name && one.second.state != SnapshotState::kGoing;
  });
  return found == all_.end() ? nullptr : &found->second;
}

bool Snapshots::has_ready() const {
  return std::ranges::any_of(all_, [](const auto& one) { return one.second.is_ready(); });
}

// Each gets its place once and loses it once; one that failed is counted as if it had had it.
uint64_t Snapshots::changes() const {
  uint64_t changes = 2 * (last_ - all_.size());
  for (const auto& [number, snapshot] : all_) {
    if (snapshot.state == SnapshotState::kReady) changes += 1;
    if (snapshot.state == SnapshotState::kGoing) changes += 2;
  }
  return changes;
}

bool Snapshots::holds(SnapshotNumber born, SnapshotNumber died) const {
  const auto next = all_.upper_bound(born);
  return next != all_.end() && next->first <= died;
}

Result<SnapshotNumber> Snapshots::begin(std::string_view name, const WallTime& created,
                                        SnapshotClass schedule) {
  if (!is_snapshot_name(name)) return fail(EINVAL, "a snapshot needs a name like a file's");
  if (find(name) != nullptr) return fail(EEXIST, "there is a snapshot of that name");
  if (is_full()) return fail(EMFILE, "there are as many snapshots as there may be");
  Snapshot snapshot{.number = last_ + 1, .name = std::string(name), .created = created, .schedule = schedule};
  Batch batch;
  TRY(raise_format_version(*store_, batch, kFormatShared));
  put_value(batch, meta_key(kLastKey), StoredNumber{snapshot.number});
  put_snapshot(batch, snapshot);
  TRY(store_->commit(batch, CommitKind::kNamespace));
  last_ = snapshot.number;
  all_[last_] = std::move(snapshot);
  return last_;
}

Result<> Snapshots::set_state(SnapshotNumber number, SnapshotState state) {
  const auto found = all_.find(number);
  if (found == all_.end()) return fail(ENOENT, "there is no such snapshot");
  Snapshot changed = found->second;
  changed.state = state;
  return change(changed, state == SnapshotState::kGoing);
}

Result<> Snapshots::set_pinned(SnapshotNumber number, bool pinned) {
  const auto found = all_.find(number);
  if (found == all_.end()) return fail(ENOENT, "there is no such snapshot");
  Snapshot changed = found->second;
  changed.pinned = pinned;
  return change(changed, /*makes_room=*/false);
}

Result<> Snapshots::change(const Snapshot& changed, bool makes_room) {
  Batch batch;
  put_snapshot(batch, changed);
  if (makes_room) batch.mark_makes_room();
  TRY(store_->commit(batch, CommitKind::kNamespace));
  all_[changed.number] = changed;
  return {};
}

Result<> Snapshots::erase(SnapshotNumber number) {
  Batch batch;
  batch.erase(number_key(kSnapshotTag, number));
  batch.mark_makes_room();
  TRY(store_->commit(batch, CommitKind::kNamespace));
  if (const auto found = all_.find(number); found != all_.end()) found->second.state = SnapshotState::kGoing;
  return {};
}

}  // namespace pnfsrdma::mds
