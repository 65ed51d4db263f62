// SPDX-License-Identifier: Apache-2.0
#include "server/mds/meta/snapshot_stores.h"

#include <rocksdb/env.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "server/mds/meta/rocksdb_reads.h"
#include "shared/base/log.h"

namespace pnfsrdma::mds {
namespace {

constexpr int kTablesOpen = 64;  // of one checkpoint

class NoLog final : public rocksdb::Logger {
 public:
  using rocksdb::Logger::Logv;
  void Logv(const char*, va_list) override {}
};

// Nothing of it may write into the checkpoint.
rocksdb::Options reading_options(rocksdb::Options options) {
  options.create_if_missing = false;
  options.listeners.clear();
  options.info_log = std::make_shared<NoLog>();
  options.max_open_files = kTablesOpen;
  // It has no log but an empty one. Whatever is in it must be whole.
  options.wal_recovery_mode = rocksdb::WALRecoveryMode::kAbsoluteConsistency;
  return options;
}

}  // namespace

SnapshotStores::SnapshotStores(const rocksdb::Options& live, std::string directory)
    : options_(reading_options(live)), directory_(std::move(directory)) {}

std::string SnapshotStores::path_of(SnapshotNumber number) const {
  return directory_ + "/" + std::to_string(number);
}

SnapshotStores::Database SnapshotStores::at_hand(SnapshotNumber number) {
  auto state = state_.lock();
  const auto found = state->open.find(number);
  if (found == state->open.end()) return nullptr;
  found->second.used = ++state->uses;
  return found->second.database;
}

Result<SnapshotStores::Database> SnapshotStores::open_at(const std::string& path) const {
  rocksdb::DB* opened = nullptr;
  const rocksdb::Status status = rocksdb::DB::OpenForReadOnly(options_, path, &opened);
  Database database(opened);
  if (!status.ok()) return fail(EIO, "opening " + path + ": " + status.ToString());
  return database;
}

// Not under the lock: the loop looks here.
Result<SnapshotStores::Database> SnapshotStores::open(SnapshotNumber number) {
  if (Database database = at_hand(number)) return database;
  if (state_.lock()->gone.contains(number)) return fail(EIO, "the snapshot has been deleted");
  auto opened = open_at(path_of(number));
  if (!opened) return complain(number, opened.error());
  std::vector<Database> closed;  // goes behind the lock
  auto state = state_.lock();
  if (state->gone.contains(number)) return fail(EIO, "the snapshot has been deleted");
  state->complained.erase(number);
  Open& place = state->open[number];
  if (place.database == nullptr) place.database = *opened;
  place.used = ++state->uses;
  opened = place.database;
  closed = close_unused(*state);
  state.unlock();
  return opened;
}

void SnapshotStores::forget(SnapshotNumber number) {
  Database closed;
  auto state = state_.lock();
  state->gone.insert(number);
  if (auto node = state->open.extract(number)) closed = std::move(node.mapped().database);
  state.unlock();
}

// The least recently used ones that nobody reads.
std::vector<SnapshotStores::Database> SnapshotStores::close_unused(State& state) {
  std::vector<Database> closed;
  while (state.open.size() > kOpenMax) {
    auto oldest = state.open.end();
    for (auto at = state.open.begin(); at != state.open.end(); ++at) {
      if (at->second.database.use_count() > 1) continue;
      if (oldest == state.open.end() || at->second.used < oldest->second.used) oldest = at;
    }
    if (oldest == state.open.end()) break;
    closed.push_back(std::move(oldest->second.database));
    state.open.erase(oldest);
  }
  return closed;
}

std::unexpected<Error> SnapshotStores::complain(SnapshotNumber number, const Error& error) {
  auto state = state_.lock();
  const bool first = !state->gone.contains(number) && state->complained.insert(number).second;
  state.unlock();
  if (first) {
    log_error("meta", "snapshot-unreadable number={} error=\"{}\" what=\"its files cannot be read\"", number,
              error.to_string());
  }
  return fail(EIO, "the metadata of snapshot " + std::to_string(number) + " cannot be read: " + error.what());
}

Result<std::optional<std::string>> SnapshotStores::read(SnapshotNumber number, std::string_view key,
                                                        Reach reach) {
  Database database = at_hand(number);
  if (database == nullptr && reach == Reach::kMemory) return fail(kNotAtHand, "the snapshot is not open");
  if (database == nullptr) {
    TRY_ASSIGN(database, open(number));
  }
  auto row = read_row(*database, key, reach);
  if (!row && row.error().number() != kNotAtHand) return complain(number, row.error());
  return row;
}

Result<> SnapshotStores::walk(SnapshotNumber number, std::string_view prefix, std::string_view from,
                              const KeyValueStore::Visitor& visitor, Reach reach, std::string& reached) {
  Database database = at_hand(number);
  if (database == nullptr && reach == Reach::kMemory) {
    reached = std::max(prefix, from);
    return fail(kNotAtHand, "the snapshot is not open");
  }
  if (database == nullptr) {
    TRY_ASSIGN(database, open(number));
  }
  auto walked = walk_rows(*database, prefix, from, visitor, reach, reached);
  if (!walked && walked.error().number() != kNotAtHand) return complain(number, walked.error());
  return walked;
}

Brought SnapshotStores::bring(const Wanted& wanted) {
  Brought brought;
  const auto database = open(wanted.snapshot);
  if (!database) {
    brought.outcome = std::unexpected(database.error());
    return brought;
  }
  brought =
      wanted.prefix ? bring_page(**database, wanted) : std::move(bring_rows(**database, {&wanted}).front());
  if (!brought.outcome) brought.outcome = complain(wanted.snapshot, brought.outcome.error());
  return brought;
}

}  // namespace pnfsrdma::mds
