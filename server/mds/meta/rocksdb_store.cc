// SPDX-License-Identifier: Apache-2.0
#include "server/mds/meta/rocksdb_store.h"

#include <fmt/core.h>
#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/listener.h>
#include <rocksdb/options.h>
#include <rocksdb/table.h>
#include <rocksdb/write_batch.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <unordered_map>

#include "server/mds/meta/boot_record.h"
#include "server/mds/meta/commit_thread.h"
#include "server/mds/meta/format_version.h"
#include "server/mds/meta/log_extent.h"
#include "server/mds/meta/metadata_room.h"
#include "server/mds/meta/read_threads.h"
#include "server/mds/meta/sync_mark.h"
#include "server/mds/meta/sync_waiters.h"
#include "server/mds/meta/upgrade_copy.h"
#include "shared/base/lifetime.h"
#include "shared/base/log.h"
#include "shared/base/random.h"
#include "shared/base/sync.h"

namespace pnfsrdma::mds {
namespace {

constexpr int kFilterBitsPerKey = 10;
constexpr uint64_t kWalBytesMax = uint64_t{256} << 20;
// A second before the promise: the sync itself takes time.
constexpr Milliseconds kStateDelay(kStateSyncMsMax - 1000);
// How often the room is looked at: so often, and after this share of the reserve was written.
constexpr Milliseconds kLookEvery{500};
// For a commit a look is too old after that.
constexpr Milliseconds kLookStale{1};
constexpr uint64_t kShareUnlooked = 16;
constexpr Milliseconds kRecoverAgain{200};
constexpr size_t kReaders = 2;
// Of a scan so much is brought at a time.
constexpr size_t kRowsFetched = 256;
constexpr size_t kBytesFetched = size_t{64} << 10;
// More deletions than that between two keys are walked by a reader, in memory as they may be.
constexpr uint64_t kSkippedInLoop = 1000;
// Of a small file system: the memtable, and the logs that wait for it.
constexpr uint64_t kShareOfMemtable = 64;
constexpr uint64_t kShareOfLogs = 16;
constexpr int kCacheShardBits = 2;

rocksdb::Slice slice(std::string_view text) {
  return {text.data(), text.size()};
}
std::string_view view(const rocksdb::Slice& slice) {
  return {slice.data(), slice.size()};
}

// Every scan: RocksDB before 8.5.2 loses the error of a table that a scan goes over to ("not in memory",
// "damaged"), and the scan ends as if there were no more rows. It does so where it looks for deleted ranges,
// and we delete none.
rocksdb::ReadOptions whole_medium() {
  rocksdb::ReadOptions options;
  options.ignore_range_deletions = true;
  return options;
}

rocksdb::ReadOptions memory_only() {
  rocksdb::ReadOptions options = whole_medium();
  options.read_tier = rocksdb::kBlockCacheTier;
  options.max_skippable_internal_keys = kSkippedInLoop;
  return options;
}

// The last key a scan has visited, kept without an allocation: the engine forgets it where it stops.
class LastKey {
 public:
  void set(const rocksdb::Slice& key) {
    if (key.size() > bytes_.size()) {
      long_.assign(key.data(), key.size());
    } else {
      std::memcpy(bytes_.data(), key.data(), key.size());
    }
    size_ = key.size();
  }
  // The next key there can be; `first` where none was visited.
  std::string behind(std::string_view first) const {
    if (size_ == 0) return std::string(first);
    std::string next(size_ > bytes_.size() ? std::string_view(long_)
                                           : std::string_view(bytes_.data(), size_));
    next.push_back('\0');
    return next;
  }

 private:
  std::array<char, 64> bytes_{};
  std::string long_;
  size_t size_ = 0;
};

Error error_of(const rocksdb::Status& status, const char* call) {
  const std::string what = std::string(call) + ": " + status.ToString();
  if (status.IsIncomplete() || status.IsBusy() || status.IsTryAgain()) return {EAGAIN, what};
  if (status.IsNoSpace()) return {ENOSPC, what};
  if (status.IsCorruption()) return {EUCLEAN, what};
  return {EIO, what};
}

// Cause and fix, for the person who starts the daemon.
Error open_error(const rocksdb::Status& status, const std::string& path) {
  const std::string text = status.ToString();
  const auto says = [&](std::string_view words) { return text.find(words) != std::string::npos; };
  if (says("lock")) {
    return {EBUSY,
            "the metadata store " + path + " is in use by another process: stop it first (" + text + ")"};
  }
  if (says("Permission denied")) {
    return {EACCES,
            "no permission to the metadata store " + path + ": chown it to the daemon's user (" + text + ")"};
  }
  if (status.IsCorruption()) {
    return {EUCLEAN, "the metadata store " + path + " is damaged: restore it from a backup (" + text + ")"};
  }
  return {EIO, "cannot open the metadata store " + path + " (" + text + ")"};
}

rocksdb::Options options_of(const RocksdbOptions& options, const MetadataRoom* room,
                            std::shared_ptr<rocksdb::EventListener> listener) {
  rocksdb::Options tuned;
  tuned.create_if_missing = options.create;
  if (options.env != nullptr) tuned.env = options.env;
  tuned.listeners.push_back(std::move(listener));
  // What a crash may leave: unsynced records torn, or missing before others. Recovery ends there; that it
  // ends no earlier than what was synced is SyncMark's to say (stricter modes refuse some ends that are
  // sound).
  tuned.wal_recovery_mode = rocksdb::WALRecoveryMode::kPointInTimeRecovery;
  // Each commit goes to the kernel at once, so that it survives the death of the daemon: one write(2) per
  // commit.
  tuned.manual_wal_flush = false;
  tuned.max_total_wal_size = room != nullptr ? room->at_most(kWalBytesMax, kShareOfLogs) : kWalBytesMax;
  tuned.write_buffer_size =
      room != nullptr ? room->at_most(options.memtable_bytes, kShareOfMemtable) : options.memtable_bytes;
  tuned.max_write_buffer_number = 4;
  // Every create asks for a name that is not there: a filter answers that for the memtables too.
  tuned.memtable_whole_key_filtering = true;
  tuned.memtable_prefix_bloom_size_ratio = 0.02;
  // Values are small and partly random, and the loop reads them: no compression.
  tuned.compression = rocksdb::kNoCompression;
  tuned.bottommost_compression = rocksdb::kNoCompression;
  tuned.level0_slowdown_writes_trigger = 40;
  tuned.level0_stop_writes_trigger = 64;
  tuned.max_background_jobs = 2;
  tuned.max_open_files = 512;
  tuned.avoid_unnecessary_blocking_io = true;
  tuned.keep_log_file_num = 4;
  tuned.max_log_file_size = size_t{4} << 20;
  tuned.info_log_level = rocksdb::InfoLogLevel::WARN_LEVEL;
  // Nothing periodic: an idle store costs nothing.
  tuned.stats_dump_period_sec = 0;
  tuned.stats_persist_period_sec = 0;
  rocksdb::BlockBasedTableOptions table;
  // A filter is one block of up to a megabyte: in shards of no more than that (the engine's default) each one
  // pushes the others out, and is read from the medium again and again. Few threads look here.
  table.block_cache = rocksdb::NewLRUCache(options.cache_bytes, kCacheShardBits);
  table.cache_index_and_filter_blocks = true;
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(kFilterBitsPerKey));
  tuned.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return tuned;
}

// The smallest key behind all keys with the prefix; empty: there is none.
std::string behind_prefix(std::string_view prefix) {
  std::string end(prefix);
  while (!end.empty() && static_cast<unsigned char>(end.back()) == 0xff) end.pop_back();
  if (!end.empty()) ++end.back();
  return end;
}

// Names, sizes and permissions of everybody's files are inside: for the daemon's user only.
Result<> make_directory(const std::string& path) {
  std::error_code error;
  const bool made = std::filesystem::create_directory(path, error);
  if (!error && made) std::filesystem::permissions(path, std::filesystem::perms::owner_all, error);
  if (error) return fail(error.value(), "making the directory " + path + " for the metadata store");
  return {};
}

// --- in a reader's thread ---

Brought read_on(rocksdb::DB& database, const Wanted& wanted) {
  Brought brought;
  const std::string end = behind_prefix(*wanted.prefix);
  const rocksdb::Slice end_slice(end);
  rocksdb::ReadOptions options = whole_medium();
  if (!end.empty()) options.iterate_upper_bound = &end_slice;
  const std::unique_ptr<rocksdb::Iterator> at(database.NewIterator(options));
  size_t bytes = 0;
  for (at->Seek(wanted.key); at->Valid(); at->Next()) {
    if (brought.rows.size() == kRowsFetched || bytes >= kBytesFetched) {
      brought.next = at->key().ToString();
      return brought;
    }
    bytes += at->key().size() + at->value().size();
    brought.rows.emplace_back(at->key().ToString(), at->value().ToString());
  }
  if (!at->status().ok()) brought.outcome = std::unexpected(error_of(at->status(), "scanning metadata"));
  return brought;
}

std::vector<Brought> read_all(rocksdb::DB& database, const std::vector<Wanted>& wanted) {
  std::vector<Brought> all(wanted.size());
  std::vector<rocksdb::Slice> keys;
  std::vector<size_t> places;
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i].prefix) {
      all[i] = read_on(database, wanted[i]);
    } else {
      keys.emplace_back(wanted[i].key);
      places.push_back(i);
    }
  }
  std::vector<std::string> values;
  const std::vector<rocksdb::Status> statuses = database.MultiGet(whole_medium(), keys, &values);
  for (size_t i = 0; i < keys.size(); ++i) {
    Brought& brought = all[places[i]];
    if (statuses[i].ok()) {
      brought.rows.emplace_back(keys[i].ToString(), std::move(values[i]));
    } else if (!statuses[i].IsNotFound()) {
      brought.outcome = std::unexpected(error_of(statuses[i], "reading metadata"));
    }
  }
  return all;
}

// Tells a log that is torn, for good, from tables that found no room and can be written again.
class BackgroundErrors final : public rocksdb::EventListener {
 public:
  void OnBackgroundError(rocksdb::BackgroundErrorReason reason, rocksdb::Status*) override {
    if (reason != rocksdb::BackgroundErrorReason::kFlush &&
        reason != rocksdb::BackgroundErrorReason::kCompaction)
      log_torn_ = true;
  }
  bool log_torn() const { return log_torn_; }

 private:
  std::atomic<bool> log_torn_ = false;
};

class RocksdbEngine final : public KeyValueStore {
 public:
  // `room`: null where the medium is a test's.
  RocksdbEngine(EventLoop& loop, std::unique_ptr<rocksdb::DB> database, std::unique_ptr<MetadataRoom> room,
                std::shared_ptr<const BackgroundErrors> errors, std::unique_ptr<SyncMark> mark,
                std::function<void(Error)> failed)
      : loop_(loop),
        mark_(std::move(mark)),
        errors_(std::move(errors)),
        database_(std::move(database)),
        room_(std::move(room)),
        on_failure_(std::move(failed)) {
    thread_ = std::make_unique<CommitThread>(
        loop,
        CommitThread::Hooks{
            .sync = [this, database = database_.get()] { return sync_or_recover(*database); },
            .progress = lifetime_.guard([this](Sequence synced) { progress(synced); }),
            .failed = lifetime_.guard([this](const Error& error) { fail_for_good(error); }),
        },
        kStateDelay);
    readers_ = std::make_unique<ReadThreads>(kReaders);
    if (room_) watch_room();
  }
  ~RocksdbEngine() override {
    stopping_ = true;
    loop_.cancel(room_timer_);
    readers_.reset();
    thread_.reset();
    // RocksDB may abort when it closes a log for which a real disk had no room: the process ends, the next
    // one recovers it. A test's medium is opened again in this one: nothing of it may stay behind, nor its
    // lock.
    if (room_ && log_ != Log::kSound) static_cast<void>(database_.release());
  }

  Sequence last_namespace_sequence() const override { return last_namespace_; }
  Sequence synced_sequence() const override { return synced_; }

  void when_synced(Sequence sequence, std::function<void()> callback) override {
    waiters_.add(sequence, std::move(callback));
    if (sequence > synced_) return;
    loop_.at_turn_end(lifetime_.guard([this] { progress(durable_); }));
  }

  StoreRoom room() const override {
    StoreRoom room = room_ ? room_->now() : StoreRoom{};
    room.stopped = room.stopped || log_ != Log::kSound;
    room.full = room.full || room.stopped;
    return room;
  }

  Result<> sync() override {
    if (failure_) return std::unexpected(*failure_);  // a log that is broken included
    const Sequence covered = last_;
    stopping_ = true;
    Result<> outcome = sync_or_recover(*database_);
    stopping_ = false;
    if (!outcome) {
      fail_for_good(outcome.error());
      return outcome;
    }
    loop_.at_turn_end(lifetime_.guard([this, covered] { progress(covered); }));
    synced_ = durable_ = std::max(durable_, covered);
    return {};
  }

  Result<> close() override {
    TRY(sync());
    stopping_ = true;
    readers_.reset();
    fetches_.clear();
    thread_.reset();
    waiters_.clear();
    const rocksdb::Status status = database_->Close();
    if (!status.ok()) return std::unexpected(error_of(status, "closing the metadata store"));
    return {};
  }

 protected:
  Result<std::optional<std::string>> read(std::string_view key, Reach reach) override {
    std::string value;
    const bool memory = reach == Reach::kMemory;
    const rocksdb::Status status = database_->Get(memory ? memory_only_ : whole_medium_, slice(key), &value);
    if (status.IsNotFound()) return std::nullopt;
    if (memory && (status.IsIncomplete() || (status.ok() && value.empty() && !surely_empty(key))))
      return fail(kNotAtHand, "reading metadata");
    if (!status.ok()) return std::unexpected(error_of(status, "reading metadata"));
    return value;
  }

  Result<> walk(std::string_view prefix, std::string_view from, const Visitor& visitor, Reach reach,
                std::string& reached) override {
    const std::string end = behind_prefix(prefix);
    const rocksdb::Slice end_slice(end);
    const bool memory = reach == Reach::kMemory;
    rocksdb::ReadOptions options = memory ? memory_only_ : whole_medium_;
    if (!end.empty()) options.iterate_upper_bound = &end_slice;
    const std::unique_ptr<rocksdb::Iterator> at(database_->NewIterator(options));
    const std::string_view first = std::max(prefix, from);
    LastKey last;
    for (at->Seek(slice(first)); at->Valid(); at->Next()) {
      last.set(at->key());
      if (!visitor(view(at->key()), view(at->value()))) return {};
    }
    if (at->status().ok()) return {};
    if (!memory || !at->status().IsIncomplete())
      return std::unexpected(error_of(at->status(), "scanning metadata"));
    reached = last.behind(first);
    return fail(kNotAtHand, "scanning metadata");
  }

  void fetch(std::vector<Wanted> wanted, Arrived done) override {
    if (!readers_) return;
    // `done` stays in the loop's hands: what it refers to belongs to the loop's thread.
    const uint64_t number = ++last_fetch_;
    fetches_.emplace(number, std::move(done));
    auto arrived = lifetime_.guard([this, number](std::vector<Brought>& brought) {
      auto fetched = fetches_.extract(number);
      if (!fetched.empty()) fetched.mapped()(std::move(brought));
    });
    readers_->run([&loop = loop_, database = database_.get(), wanted = std::move(wanted), arrived] {
      auto brought = std::make_shared<std::vector<Brought>>(read_all(*database, wanted));
      loop.post([arrived, brought] { arrived(*brought); });
    });
  }

  Result<Sequence> write(const Batch& batch, CommitKind kind) override {
    if (failure_) return std::unexpected(*failure_);
    // A log that meets the end of the medium is torn. So nobody writes that far: near the end it is looked at
    // before each commit, and farther off before the first one in a millisecond: a stranger may take tens of
    // megabytes between two looks of the timer. One statvfs(2), below a microsecond.
    if (room_ && (room_->near_full() || unlooked_ > room_->reserve_bytes() / kShareUnlooked ||
                  loop_.now() - looked_ >= kLookStale))
      look_at_room();
    if (room().stopped) return fail(EAGAIN, "the metadata disk is full");
    rocksdb::WriteBatch writes;
    batch.for_each(
        [&](std::string_view key, std::string_view value) { writes.Put(slice(key), slice(value)); },
        [&](std::string_view key) { writes.Delete(slice(key)); });
    const SyncMark::Mark mark = mark_->mark();
    writes.PutLogData({mark.data(), mark.size()});  // in the log only
    rocksdb::WriteOptions options;
    options.no_slowdown = true;
    const rocksdb::Status status = database_->Write(options, &writes);
    if (!status.ok()) {
      const Error error = error_of(status, "writing metadata");
      if (status.IsNoSpace() && room_ && !errors_->log_torn()) return begin_recovery(error);
      // Part of it may be in the log: what comes behind would be lost with it. No stall, so this is the end.
      if (error.number() != EAGAIN) {
        log_ = Log::kBroken;
        fail_for_good(error);
      }
      return std::unexpected(error);
    }
    unlooked_ += writes.GetDataSize();
    ++last_;
    if (kind == CommitKind::kNamespace) last_namespace_ = last_;
    thread_->committed(last_, kind);
    return last_;
  }

 private:
  // With a table that is not open the engine says "found" and gives no value.
  bool surely_empty(std::string_view key) {
    std::string value;
    bool found = false;
    return database_->KeyMayExist(memory_only_, slice(key), &value, &found) && found;
  }

  // kWaits: tables found no room, and the engine takes no commits until they have been written. The log is
  // sound.
  enum class Log : uint8_t { kSound, kWaits, kBroken };

  // Commits wait, as if the engine were stalled: the commit thread looks when there is room.
  std::unexpected<Error> begin_recovery(const Error& error) {
    log_warning("meta", "metadata-tables-full error=\"{}\" what=\"commits wait until there is room\"",
                error.to_string());
    log_ = Log::kWaits;
    look_at_room();
    thread_->sync_anyway();
    return fail(EAGAIN, error.what());
  }

  // In the commit thread, and at the end of the daemon.
  Result<> sync_or_recover(rocksdb::DB& database) {
    while (log_ == Log::kWaits) {
      const rocksdb::Status resumed = database.Resume();
      if (resumed.ok()) {
        log_ = Log::kSound;
        log_info("meta", "metadata-tables-written");
        break;
      }
      if (stopping_) return std::unexpected(error_of(resumed, "resuming after the metadata disk was full"));
      sleep_for(kRecoverAgain);
    }
    // RocksDB aborts the process when a log that could not be written is synced.
    if (log_ == Log::kBroken) return fail(EIO, "the log could not be written");
    return sync_wal(database);
  }

  void watch_room() {
    look_at_room();
    room_timer_ = loop_.after(kLookEvery, [this] { watch_room(); });
  }
  void look_at_room() {
    unlooked_ = 0;
    looked_ = loop_.now();
    room_->look();
  }

  Result<> sync_wal(rocksdb::DB& database) {
    const uint64_t written = database.GetLatestSequenceNumber();
    const rocksdb::Status status = database.SyncWAL();
    if (!status.ok()) return std::unexpected(error_of(status, "syncing metadata"));
    mark_->note(written);
    return {};
  }

  // In slices: one sync may be what thousands wait for. Who sees `synced_` may take it that they have run.
  void progress(Sequence synced) {
    durable_ = std::max(durable_, synced);
    const SteadyTime end = loop_.now() + EventLoop::kSlice;
    bool any = false;
    const Sequence reached =
        waiters_.run(durable_, [&] { return std::exchange(any, true) && loop_.now() >= end; });
    synced_ = std::max(synced_, reached);
    if (reached >= durable_ || std::exchange(goes_on_, true)) return;
    loop_.at_next_turn(lifetime_.guard([this] {
      goes_on_ = false;
      progress(durable_);
    }));
  }

  void fail_for_good(const Error& error) {
    if (failure_) return;
    failure_ = Error(EIO, error.what());
    waiters_.clear();
    if (on_failure_) loop_.post([on_failure = on_failure_, error] { on_failure(error); });
  }

  EventLoop& loop_;
  const std::unique_ptr<SyncMark> mark_;
  std::shared_ptr<const BackgroundErrors> errors_;
  std::unique_ptr<rocksdb::DB> database_;
  std::unique_ptr<MetadataRoom> room_;
  const std::function<void(Error)> on_failure_;
  std::optional<Error> failure_;
  std::atomic<Log> log_ = Log::kSound;  // for the commit thread, which this object joins
  std::atomic<bool> stopping_ = false;
  uint64_t unlooked_ = 0;  // bytes written since the room was looked at
  SteadyTime looked_{};    // when that was
  EventLoop::TimerId room_timer_ = 0;
  SyncWaiters waiters_;
  Sequence last_ = 0;
  Sequence last_namespace_ = 0;
  Sequence synced_ = 0;   // told to all who waited for it
  Sequence durable_ = 0;  // not less
  bool goes_on_ = false;  // the next turn tells more of them
  Lifetime lifetime_;
  const rocksdb::ReadOptions memory_only_ = memory_only();
  const rocksdb::ReadOptions whole_medium_ = whole_medium();
  uint64_t last_fetch_ = 0;
  std::unordered_map<uint64_t, Arrived> fetches_;  // under way
  // These go first: they use the database.
  std::unique_ptr<CommitThread> thread_;
  std::unique_ptr<ReadThreads> readers_;
};

// Beside the store, under a name that is free.
Result<std::string> keep_copy(const std::string& path) {
  std::string copy;
  for (int i = 1; copy.empty() || std::filesystem::exists(copy); ++i)
    copy = path + ".damaged-" + std::to_string(i);
  std::error_code error;
  std::filesystem::copy(path, copy, std::filesystem::copy_options::recursive, error);
  if (!error) std::filesystem::permissions(copy, std::filesystem::perms::owner_all, error);
  if (error) return fail(error.value(), "copying the metadata store " + path + " to " + copy);
  return copy;
}

// What was promised and is not there any more is lost only by somebody's decision.
Result<> check_log(const rocksdb::Options& tuned, const RocksdbOptions& options, SyncMark& mark) {
  TRY_ASSIGN(const LogExtent extent, measure_log(tuned, options.path, mark));
  if (!extent.loses_synced()) return {};
  const std::string lost = fmt::format("changes {} to {}, which were durable, cannot be read from the log {}",
                                       extent.recovered + 1, extent.synced, extent.file);
  if (!options.accept_loss) {
    return fail(EUCLEAN,
                "the metadata store " + options.path + " is damaged: " + lost +
                    ". Nothing was changed. Restore metadata and pools from a backup, or keep what can "
                    "be read with pnfsrdma-mdsd --accept-metadata-loss: files made or grown in these "
                    "changes lose their data then");
  }
  TRY_ASSIGN(const std::string copy, keep_copy(options.path));
  SystemRandom random;
  note_failed_sync(options.path, random);  // what clients and bricks know may be newer than the store
  TRY(mark.set_back(extent.recovered));
  log_warning("meta", "loss-accepted copy={} what=\"{}\"", copy, lost);
  return {};
}

}  // namespace

Result<std::unique_ptr<KeyValueStore>> RocksdbStore::open(EventLoop& loop, const RocksdbOptions& options,
                                                          std::function<void(Error)> failed) {
  if (options.create) {
    TRY(make_directory(options.path));
  } else if (!std::filesystem::exists(options.path + "/CURRENT")) {
    return fail(ENOENT, "there is no metadata store in " + options.path);
  }
  // Before the store: opening it takes room, too.
  std::unique_ptr<MetadataRoom> room;
  if (options.create && options.env == nullptr) room = std::make_unique<MetadataRoom>(options.path);
  const auto errors = std::make_shared<BackgroundErrors>();
  const rocksdb::Options tuned = options_of(options, room.get(), errors);
  SystemRandom random;
  TRY_ASSIGN(auto mark, SyncMark::open(options.path, random));
  TRY(check_log(tuned, options, *mark));
  rocksdb::DB* database = nullptr;
  const rocksdb::Status status = rocksdb::DB::Open(tuned, options.path, &database);
  if (!status.ok()) return std::unexpected(open_error(status, options.path));
  std::unique_ptr<rocksdb::DB> opened(database);
  if (options.create) TRY(keep_upgrade_copy(*opened, options.path));
  auto store = std::make_unique<RocksdbEngine>(loop, std::move(opened), std::move(room), errors,
                                               std::move(mark), std::move(failed));
  if (const Result<> checked = check_format_version(*store); !checked) {
    return std::unexpected(checked.error().in("opening the metadata store " + options.path));
  }
  return store;
}

}  // namespace pnfsrdma::mds
