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
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <unordered_map>

#include "server/mds/meta/boot_record.h"
#include "server/mds/meta/checkpoints.h"
#include "server/mds/meta/commit_thread.h"
#include "server/mds/meta/format_version.h"
#include "server/mds/meta/log_extent.h"
#include "server/mds/meta/metadata_room.h"
#include "server/mds/meta/read_threads.h"
#include "server/mds/meta/rocksdb_reads.h"
#include "server/mds/meta/still_view.h"
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
// Of a small file system: the memtable, and the logs that wait for it.
constexpr uint64_t kShareOfMemtable = 64;
constexpr uint64_t kShareOfLogs = 16;
constexpr int kCacheShardBits = 2;
// Commits are refused while a checkpoint is made: more than that is worth a line in the log.
constexpr Milliseconds kCheckpointSlow{2000};

rocksdb::Slice slice(std::string_view text) {
  return {text.data(), text.size()};
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
  // The commits of a turn of the loop go to the kernel together, by one write(2), before a reply that has seen one of
  // them: from then on they survive the death of the daemon.
  tuned.manual_wal_flush = true;
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

// Names, sizes and permissions of everybody's files are inside: for the daemon's user only.
Result<> make_directory(const std::string& path) {
  std::error_code error;
  const bool made = std::filesystem::create_directory(path, error);
  if (!error && made) std::filesystem::permissions(path, std::filesystem::perms::owner_all, error);
  if (error) return fail(error.value(), "making the directory " + path + " for the metadata store");
  return {};
}

// In a reader's thread.
std::vector<Brought> read_all(rocksdb::DB& database, SnapshotStores& snapshots,
                              const std::vector<Wanted>& wanted) {
  std::vector<Brought> all(wanted.size());
  std::vector<const Wanted*> rows;
  std::vector<size_t> places;
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i].snapshot != 0) {
      all[i] = snapshots.bring(wanted[i]);
    } else if (wanted[i].prefix) {
      all[i] = bring_page(database, wanted[i]);
    } else {
      rows.push_back(&wanted[i]);
      places.push_back(i);
    }
  }
  std::vector<Brought> brought = bring_rows(database, rows);
  for (size_t i = 0; i < places.size(); ++i) all[places[i]] = std::move(brought[i]);
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
                std::unique_ptr<Checkpoints> checkpoints, std::function<void(Error)> failed)
      : loop_(loop),
        mark_(std::move(mark)),
        errors_(std::move(errors)),
        database_(std::move(database)),
        checkpoints_(std::move(checkpoints)),
        room_(std::move(room)),
        on_failure_(std::move(failed)) {
    written_ = database_->GetLatestSequenceNumber();
    thread_ = std::make_unique<CommitThread>(
        loop,
        CommitThread::Hooks{
            .sync = [this, database = database_.get()] { return sync_or_recover(*database); },
            .progress = lifetime_.guard([this](Sequence synced) { progress(synced); }),
            .failed = lifetime_.guard([this](const Error& error) { fail_for_good(error); }),
            .may_sync_here = [this] { return log_ == Log::kSound; },  // else it waits for room
        },
        kStateDelay);
    readers_ = std::make_unique<ReadThreads>(kReaders);
    opener_ = std::make_unique<ReadThreads>(1);
    if (room_) watch_room();
  }
  ~RocksdbEngine() override {
    stopping_ = true;
    loop_.cancel(room_timer_);
    loop_.cancel(slow_timer_);
    copier_.reset();
    readers_.reset();
    opener_.reset();
    thread_.reset();
    // RocksDB may abort when it closes a log for which a real disk had no room: the process ends, the next
    // one recovers it. A test's medium is opened again in this one: nothing of it may stay behind, nor its
    // lock.
    if (room_ && log_ != Log::kSound) static_cast<void>(database_.release());
  }

  Sequence last_namespace_sequence() const override { return last_namespace_; }
  Sequence last_sequence() const override { return last_; }
  Sequence synced_sequence() const override { return synced_; }

  void when_synced(Sequence sequence, std::function<void()> callback) override {
    waiters_.add(sequence, std::move(callback));
    if (sequence > synced_) return;
    loop_.at_turn_end(lifetime_.guard([this] { progress(durable_); }));
  }

  bool written(Sequence sequence) const override { return !unwritten_ || sequence <= handed_over_; }
  void when_written(std::function<void()> callback) override {
    write_waiters_.push_back(std::move(callback));
  }

  std::unique_ptr<KeyValueStore> still() override { return std::make_unique<StillView>(*database_); }

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
    Result<> outcome = write_log();
    if (outcome) outcome = sync_or_recover(*database_);
    stopping_ = false;
    if (!outcome) {
      fail_for_good(outcome.error());
      return outcome;
    }
    handed_over_ = covered;
    loop_.at_turn_end(lifetime_.guard([this, covered] { progress(covered); }));
    synced_ = durable_ = std::max(durable_, covered);
    return {};
  }

  void end_checkpoints() override {
    loop_.cancel(slow_timer_);
    copier_.reset();
    copies_.clear();
    makes_copy_ = false;
    forget_checkpoint();
  }

  Result<> close() override {
    TRY(sync());
    stopping_ = true;
    end_checkpoints();
    readers_.reset();
    opener_.reset();
    fetches_.clear();
    thread_.reset();
    waiters_.clear();
    write_waiters_.clear();
    const rocksdb::Status status = database_->Close();
    if (!status.ok()) return std::unexpected(error_of(status, "closing the metadata store"));
    return {};
  }

  void prepare_checkpoint(std::function<void()> done) override {
    in_copier(
        [this] {
          const rocksdb::Status flushed = database_->Flush(rocksdb::FlushOptions());
          return flushed.ok() ? Result<>() : std::unexpected(error_of(flushed, "writing out metadata"));
        },
        [done = std::move(done)](const Result<>&) { done(); });
  }

  void drop_checkpoint(SnapshotNumber number, std::function<void(Result<>)> done) override {
    // Closing it waits for the medium, too.
    in_copier(
        [this, number] {
          checkpoints_->stores().forget(number);
          return checkpoints_->remove(number);
        },
        std::move(done));
  }

  void copy_to(const std::string& path, std::function<void(Result<>)> done) {
    in_copier([this, path] { return checkpoints_->copy_to(*database_, path); }, std::move(done));
  }

  Result<> keep_checkpoints(const std::set<SnapshotNumber>& kept) override {
    return checkpoints_->keep(kept);
  }

 protected:
  Result<std::optional<std::string>> read(SnapshotNumber at, std::string_view key, Reach reach) override {
    if (at != 0) return checkpoints_->stores().read(at, key, reach);
    return read_row(*database_, key, reach);
  }

  Result<> walk(SnapshotNumber at, std::string_view prefix, std::string_view from, const Visitor& visitor,
                Reach reach, std::string& reached) override {
    if (at != 0) return checkpoints_->stores().walk(at, prefix, from, visitor, reach, reached);
    return walk_rows(*database_, prefix, from, visitor, reach, reached);
  }

  void make_checkpoint(SnapshotNumber number, std::function<void(Result<>)> done) override {
    const Result<> possible = may_make_checkpoint();
    if (!possible) {
      return loop_.post(lifetime_.guard([possible, done = std::move(done)] { done(possible); }));
    }
    slow_timer_ = loop_.after(kCheckpointSlow, [number] {
      log_warning("meta", "snapshot-slow number={} what=\"changes wait until the metadata is copied\"",
                  number);
    });
    makes_copy_ = true;
    in_copier([this, number] { return checkpoints_->make(*database_, number); },
              [this, done = std::move(done)](Result<> outcome) {
                loop_.cancel(slow_timer_);
                makes_copy_ = false;
                done(std::move(outcome));
              });
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
    // Who opens a snapshot's copy reads it, too: one after the other, beside the readers.
    const bool opens = std::ranges::any_of(wanted, [this](const Wanted& one) {
      return one.snapshot != 0 && checkpoints_->stores().at_hand(one.snapshot) == nullptr;
    });
    (opens ? opener_ : readers_)
        ->run([&loop = loop_, database = database_.get(), snapshots = &checkpoints_->stores(),
               wanted = std::move(wanted), arrived] {
          auto brought = std::make_shared<std::vector<Brought>>(read_all(*database, *snapshots, wanted));
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
    const bool goes = batch.makes_room() && log_ == Log::kSound;
    if (room().stopped && !goes) return fail(EAGAIN, "the metadata disk is full");
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
    if (!std::exchange(unwritten_, true)) loop_.at_turn_end(lifetime_.guard([this] { end_turn(); }));
    ++last_;
    if (kind == CommitKind::kNamespace) last_namespace_ = last_;
    return last_;
  }

 private:
  Result<> may_make_checkpoint() const {
    if (makes_copy_) return fail(EBUSY, "a snapshot is being taken");
    if (failure_) return std::unexpected(*failure_);
    if (room().full) return fail(ENOSPC, "the metadata disk has no room for a snapshot");
    return {};
  }

  // Runs `work` outside of the loop, one after the other, and calls `done` in the loop, unless this has gone.
  void in_copier(std::function<Result<>()> work, std::function<void(Result<>)> done) {
    if (stopping_) return;
    if (!copier_) copier_ = std::make_unique<ReadThreads>(1);
    const uint64_t number = ++last_copy_;
    copies_.emplace(number, std::move(done));
    auto finished = lifetime_.guard([this, number](const Result<>& outcome) {
      auto copy = copies_.extract(number);
      if (!copy.empty()) copy.mapped()(outcome);
    });
    copier_->run([&loop = loop_, work = std::move(work), finished] {
      loop.post([finished, outcome = work()] { finished(outcome); });
    });
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
    const uint64_t written = written_;
    const rocksdb::Status status = database.SyncWAL();
    if (!status.ok()) return std::unexpected(error_of(status, "syncing metadata"));
    mark_->note(written);
    return {};
  }

  // What this turn has committed goes to the kernel, and then to the commit thread: it finds no log to write, so that
  // neither waits for the other.
  void end_turn() {
    if (failure_) return;
    if (const Result<> done = write_log(); !done) return fail_for_good(done.error());
    // First: who goes on behind a sync in this turn may commit more.
    const Sequence before = std::exchange(handed_over_, last_);
    if (last_ > before)
      thread_->committed(last_, last_namespace_ > before ? CommitKind::kNamespace : CommitKind::kState);
    for (const auto& callback : std::exchange(write_waiters_, {})) callback();
  }

  Result<> write_log() {
    if (!unwritten_) return {};
    const rocksdb::Status status = database_->FlushWAL(false);
    if (!status.ok()) {
      log_ = Log::kBroken;
      return std::unexpected(error_of(status, "writing the log of the metadata"));
    }
    written_ = database_->GetLatestSequenceNumber();
    unwritten_ = false;
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
    write_waiters_.clear();
    if (on_failure_) loop_.post([on_failure = on_failure_, error] { on_failure(error); });
  }

  EventLoop& loop_;
  const std::unique_ptr<SyncMark> mark_;
  std::shared_ptr<const BackgroundErrors> errors_;
  std::unique_ptr<rocksdb::DB> database_;
  const std::unique_ptr<Checkpoints> checkpoints_;
  std::unique_ptr<MetadataRoom> room_;
  const std::function<void(Error)> on_failure_;
  std::optional<Error> failure_;
  std::atomic<Log> log_ = Log::kSound;  // for the commit thread, which this object joins
  std::atomic<bool> stopping_ = false;
  uint64_t unlooked_ = 0;  // bytes written since the room was looked at
  SteadyTime looked_{};    // when that was
  EventLoop::TimerId room_timer_ = 0;
  SyncWaiters waiters_;
  std::vector<std::function<void()>> write_waiters_;
  bool unwritten_ = false;             // something of this turn is in the engine's own memory only
  std::atomic<uint64_t> written_ = 0;  // the engine's sequence of what is not; for the commit thread
  Sequence handed_over_ = 0;           // to the commit thread
  Sequence last_ = 0;
  Sequence last_namespace_ = 0;
  Sequence synced_ = 0;   // told to all who waited for it
  Sequence durable_ = 0;  // not less
  bool goes_on_ = false;  // the next turn tells more of them
  Lifetime lifetime_;
  uint64_t last_fetch_ = 0;
  std::unordered_map<uint64_t, Arrived> fetches_;  // under way
  uint64_t last_copy_ = 0;
  std::unordered_map<uint64_t, std::function<void(Result<>)>> copies_;  // under way
  bool makes_copy_ = false;
  EventLoop::TimerId slow_timer_ = 0;
  // These go first: they use the database.
  std::unique_ptr<CommitThread> thread_;
  std::unique_ptr<ReadThreads> readers_;
  std::unique_ptr<ReadThreads> opener_;
  std::unique_ptr<ReadThreads> copier_;  // for checkpoints; null: there was no need of it
};

// Beside the store, under a name that is free. Checkpoints never change: their files are shared, not copied.
Result<std::string> keep_copy(const std::string& path) {
  std::string copy;
  for (int i = 1; copy.empty() || std::filesystem::exists(copy); ++i)
    copy = path + ".damaged-" + std::to_string(i);
  std::error_code error;
  std::filesystem::copy(path, copy, std::filesystem::copy_options::none, error);
  const std::string checkpoints = std::string("/") + Checkpoints::kDirectory;
  if (!error && std::filesystem::exists(path + checkpoints)) {
    std::filesystem::copy(
        path + checkpoints, copy + checkpoints,
        std::filesystem::copy_options::recursive | std::filesystem::copy_options::create_hard_links, error);
  }
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
  auto store =
      std::make_unique<RocksdbEngine>(loop, std::move(opened), std::move(room), errors, std::move(mark),
                                      std::make_unique<Checkpoints>(tuned, options.path), std::move(failed));
  if (const Result<> checked = check_format_version(*store); !checked) {
    return std::unexpected(checked.error().in("opening the metadata store " + options.path));
  }
  return store;
}

void RocksdbStore::copy_to(KeyValueStore& store, const std::string& path,
                           std::function<void(Result<>)> done) {
  static_cast<RocksdbEngine&>(store).copy_to(path, std::move(done));
}

}  // namespace pnfsrdma::mds
