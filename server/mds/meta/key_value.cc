// SPDX-License-Identifier: Apache-2.0
#include "server/mds/meta/key_value.h"

#include <algorithm>

#include "server/mds/meta/request_reads.h"
#include "shared/base/sync.h"

namespace pnfsrdma::mds {
namespace {

bool names_a_snapshot(const Batch& batch) {
  bool any = false;
  const auto look = [&](std::string_view key) { any = any || snapshot_of_key(key) != 0; };
  batch.for_each([&](std::string_view key, std::string_view) { look(key); }, look);
  return any;
}

}  // namespace

void Batch::append(const Batch& other) {
  bytes_ += other.bytes_;
  entries_.insert(entries_.end(), other.entries_.begin(), other.entries_.end());
}

void Batch::add(std::string_view key, std::string_view value, bool is_put) {
  bytes_ += key;
  bytes_ += value;
  entries_.push_back({static_cast<uint32_t>(key.size()), static_cast<uint32_t>(value.size()), is_put});
}

Result<std::optional<std::string>> KeyValueStore::get(std::string_view key) {
  if (request_ != nullptr) {
    if (const Brought* brought = request_->row(key)) {
      TRY(brought->outcome);
      if (brought->rows.empty()) return std::nullopt;
      return brought->rows.front().second;
    }
  }
  auto found = read_routed(key, Reach::kMemory);
  if (found || found.error().number() != kNotAtHand || request_waits(key, nullptr)) return found;
  return read_routed(key, Reach::kMedium);
}

Result<> KeyValueStore::scan(std::string_view prefix, std::string_view from, const Visitor& visitor) {
  std::string reached;
  for (std::string_view at = std::max(prefix, from);;) {
    if (const Brought* page = request_ != nullptr ? request_->page(prefix, at) : nullptr) {
      TRY(page->outcome);
      for (const auto& [key, value] : page->rows) {
        if (key >= at && !visitor(key, value)) return {};
      }
      if (page->next.empty()) return {};
      at = reached = page->next;
      continue;
    }
    std::string stopped;
    auto walked = walk_routed(prefix, at, visitor, Reach::kMemory, stopped);
    if (walked || walked.error().number() != kNotAtHand) return walked;
    at = reached = std::move(stopped);
    if (request_ != nullptr && request_->page(prefix, at) != nullptr) continue;
    if (request_waits(at, &prefix)) return walked;
    return walk_routed(prefix, at, visitor, Reach::kMedium, stopped);
  }
}

Result<Sequence> KeyValueStore::commit(const Batch& batch, CommitKind kind) {
  // The request took something for absent, or for failed, that is only not read yet.
  if (request_ != nullptr && request_->missed()) return fail(kNotAtHand, "the request is run again");
  if (makes_checkpoint_) return fail(EAGAIN, "a snapshot is being taken");
  if (names_a_snapshot(batch)) return fail(EROFS, "snapshots do not change");
  auto sequence = write(batch, kind);
  if (!sequence) return sequence;
  if (request_ != nullptr) request_->end_reading();
  if (!pinned_.empty()) {
    batch.for_each([this](std::string_view key, std::string_view) { pinned_.changed(key); },
                   [this](std::string_view key) { pinned_.changed(key); });
  }
  return sequence;
}

bool KeyValueStore::request_waits(std::string_view key, const std::string_view* prefix) {
  ++read_counts_.misses;
  if (request_ != nullptr && request_->want(key, prefix)) return true;
  ++read_counts_.blocking;
  return false;
}

Result<std::optional<std::string>> KeyValueStore::read_routed(std::string_view key, Reach reach) {
  const SnapshotNumber snapshot = snapshot_of_key(key);
  if (snapshot == 0) return read(0, key, reach);
  if (snapshot == kSnapshotList) return std::nullopt;
  return read(snapshot, key_without_snapshot(key), reach);
}

Result<> KeyValueStore::walk_routed(std::string_view prefix, std::string_view from, const Visitor& visitor,
                                    Reach reach, std::string& reached) {
  const SnapshotNumber snapshot = snapshot_of_key(prefix);
  if (snapshot == 0) return walk(0, prefix, from, visitor, reach, reached);
  const std::string_view first = std::max(prefix, from);
  if (snapshot == kSnapshotList || !first.starts_with(prefix)) return {};
  const auto visit = [&](std::string_view key, std::string_view value) {
    return visitor(key_in_snapshot(snapshot, key), value);
  };
  auto walked =
      walk(snapshot, key_without_snapshot(prefix), key_without_snapshot(first), visit, reach, reached);
  if (!reached.empty()) reached = key_in_snapshot(snapshot, reached);
  return walked;
}

void KeyValueStore::begin_fetch(std::vector<Wanted> wanted, Arrived done) {
  ++read_counts_.fetches;
  std::vector<SnapshotNumber> snapshots;
  for (Wanted& one : wanted) {
    snapshots.push_back(one.snapshot = snapshot_of_key(one.key));
    if (one.snapshot == 0) continue;
    one.key = key_without_snapshot(one.key);
    if (one.prefix) one.prefix = key_without_snapshot(*one.prefix);
  }
  fetch(std::move(wanted),
        [this, begun = steady_now(), snapshots = std::move(snapshots), done = std::move(done)](auto brought) {
          read_counts_.fetch_latency.add(steady_now() - begun);
          for (size_t i = 0; i < brought.size() && i < snapshots.size(); ++i) {
            if (snapshots[i] == 0) continue;
            for (auto& row : brought[i].rows) row.first = key_in_snapshot(snapshots[i], row.first);
            if (!brought[i].next.empty()) brought[i].next = key_in_snapshot(snapshots[i], brought[i].next);
          }
          done(std::move(brought));
        });
}

void KeyValueStore::checkpoint(SnapshotNumber number, std::function<void(Result<>)> done) {
  if (makes_checkpoint_) return make_checkpoint(number, std::move(done));  // EBUSY
  makes_checkpoint_ = true;
  make_checkpoint(number, [this, done = std::move(done)](Result<> outcome) {
    makes_checkpoint_ = false;
    done(std::move(outcome));
  });
}

}  // namespace pnfsrdma::mds
