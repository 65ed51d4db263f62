// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/mds/meta/key_value.h"
#include "server/mds/meta/sync_waiters.h"
#include "shared/base/event_loop.h"

namespace pnfsrdma::mds {

// A KeyValueStore in memory, for tests and the simulator. It can lose what was not synced, as a host that
// crashes does. Checkpoints are copies; one is durable as it is made. Tests may come between its writes.
class MemoryStore : public KeyValueStore {
 public:
  enum class Syncing {
    kEachTurn,  // at the end of the loop's turn
    kManual,    // by sync() only
  };
  explicit MemoryStore(EventLoop& loop, Syncing syncing = Syncing::kEachTurn);
  ~MemoryStore() override;

  Sequence last_namespace_sequence() const override { return last_namespace_; }
  Sequence last_sequence() const override { return last_; }
  Sequence synced_sequence() const override { return synced_; }
  void when_synced(Sequence sequence, std::function<void()> callback) override;
  bool written(Sequence) const override { return !unwritten_; }
  void when_written(std::function<void()> callback) override {
    write_waiters_.push_back(std::move(callback));
  }
  Result<> sync() override;
  Result<> close() override { return sync(); }
  std::unique_ptr<KeyValueStore> still() override;

  void prepare_checkpoint(std::function<void()> done) override;
  void drop_checkpoint(SnapshotNumber number, std::function<void(Result<>)> done) override;
  Result<> keep_checkpoints(const std::set<SnapshotNumber>& kept) override;

  using Content = std::map<std::string, std::string, std::less<>>;
  using Checkpoints = std::map<SnapshotNumber, Content>;
  // Those that are there; for whoever keeps them beyond the store's end.
  const Checkpoints& checkpoints() const { return checkpoints_; }
  void set_checkpoints(Checkpoints checkpoints) { checkpoints_ = std::move(checkpoints); }

  // The host crashes: of the batches behind the last sync the first `keep` are still there. The store is then
  // as just opened: sequences start anew, nobody waits.
  void crash(size_t keep);
  size_t unsynced() const { return unsynced_.size(); }
  // Those who wait are called no more. Where they may not be taken apart, before the crash.
  SyncWaiters take_waiters() { return std::exchange(waiters_, {}); }
  // The next `count` commits are refused with EAGAIN, as a stalling engine would.
  void stall(size_t count) { stalls_ = count; }
  // From now on only sync() syncs.
  void sync_by_hand() { syncing_ = Syncing::kManual; }
  // From now on commits are written when the loop's turn ends.
  void write_at_turn_end() { writes_at_turn_end_ = true; }
  // From now on nothing is in memory: each row that a request reads is fetched for it, which takes so long.
  void go_cold(Milliseconds fetch_time = Milliseconds(0)) { fetch_time_ = fetch_time; }
  void go_warm() { fetch_time_.reset(); }
  // Who scans a view of still() waits until the views are released.
  void hold_views() { views_held_ = std::make_shared<std::atomic<bool>>(true); }
  void release_views() { *views_held_ = false; }
  // Of a scan so many rows are fetched at a time.
  size_t rows_fetched = 3;

 protected:
  Result<std::optional<std::string>> read(SnapshotNumber at, std::string_view key, Reach reach) override;
  Result<> walk(SnapshotNumber at, std::string_view prefix, std::string_view from, const Visitor& visitor,
                Reach reach, std::string& reached) override;
  Result<Sequence> write(const Batch& batch, CommitKind kind) override;
  void fetch(std::vector<Wanted> wanted, Arrived done) override;
  void make_checkpoint(SnapshotNumber number, std::function<void(Result<>)> done) override;

 private:
  // Null: there is no such checkpoint.
  const Content* content(SnapshotNumber at) const;
  void post(std::function<void()> work);
  static void apply(const Batch& batch, Content& content);
  Brought bring(const Wanted& wanted) const;
  void plan_sync();
  void plan_callbacks();

  EventLoop& loop_;
  Syncing syncing_;
  Content content_;
  Content synced_content_;
  Checkpoints checkpoints_;
  bool makes_copy_ = false;
  uint64_t crashes_ = 0;
  std::vector<Batch> unsynced_;
  Sequence last_ = 0;
  Sequence last_namespace_ = 0;
  Sequence synced_ = 0;
  size_t stalls_ = 0;
  std::optional<Milliseconds> fetch_time_;  // nullopt: all is in memory
  uint64_t last_fetch_ = 0;
  std::map<uint64_t, Arrived> fetches_;  // under way
  std::shared_ptr<std::atomic<bool>> views_held_ = std::make_shared<std::atomic<bool>>(false);
  std::shared_ptr<const std::atomic<bool>> held_;  // of a view: its store's
  bool sync_planned_ = false;
  bool writes_at_turn_end_ = false;
  bool unwritten_ = false;
  std::vector<std::function<void()>> write_waiters_;
  bool callbacks_planned_ = false;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  SyncWaiters waiters_;
};

}  // namespace pnfsrdma::mds
