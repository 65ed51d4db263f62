// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "server/mds/log/log.h"
#include "server/mds/log/log_record.h"
#include "server/mds/log/overlay.h"
#include "server/mds/log/store_position.h"
#include "server/mds/meta/key_value.h"
#include "server/mds/meta/sync_waiters.h"
#include "shared/base/event_loop.h"
#include "shared/base/lifetime.h"

namespace pnfsrdma::mds {

// A store whose changes go through a log: the log is what was promised, and the store below it ("the base") follows. A
// batch is seen by reads at once, out of an overlay, and enters the base when it is logged, so a server that loses the
// lead has nothing to take back. All batches of a turn of the loop are one record.
//
// "Durable" means logged here, for both kinds of commits: whoever takes over has the clients' state, too. Replies also
// wait while it is not certain that this server leads: what they have read may be out of date.
class ReplicatedStore final : public KeyValueStore {
 public:
  struct Options {
    StorePosition position;                    // the base's
    std::function<bool()> leads;               // answers may leave now
    std::function<void(LogPosition)> durable;  // the base has this much of the log on its medium
    std::function<void(Error)> failed;         // posted, once: the log or the base take no more; end
  };
  ReplicatedStore(EventLoop& loop, std::unique_ptr<KeyValueStore> base, std::unique_ptr<Log> log,
                  Options options);
  ~ReplicatedStore() override;

  // Every commit counts.
  Sequence last_namespace_sequence() const override { return last_; }
  Sequence last_sequence() const override { return last_; }
  Sequence synced_sequence() const override { return synced_; }
  void when_synced(Sequence sequence, std::function<void()> callback) override;
  bool written(Sequence sequence) const override {
    return sequence <= logged_ && !failure_ && options_.leads();
  }
  void when_written(std::function<void()> callback) override;
  StoreRoom room() const override { return base_->room(); }
  std::unique_ptr<KeyValueStore> still() override { return base_->still(); }

  void prepare_checkpoint(std::function<void()> done) override { base_->prepare_checkpoint(std::move(done)); }
  void drop_checkpoint(SnapshotNumber number, std::function<void(Result<>)> done) override;
  Result<> keep_checkpoints(const std::set<SnapshotNumber>& kept) override {
    return base_->keep_checkpoints(kept);
  }
  void end_checkpoints() override;

  Result<> sync() override;
  Result<> close() override;

  // Of the log's records that are not in the base yet.
  size_t waiting_bytes() const { return turn_bytes_ + pending_bytes_; }
  // Commits get EAGAIN while more than that waits.
  static constexpr size_t kWaitingBytesMax = size_t{64} << 20;
  // A turn brings no more operations into the base, but for the record that it ends in.
  static constexpr size_t kOperationsMax = 2000;

 protected:
  Result<std::optional<std::string>> read(SnapshotNumber at, std::string_view key, Reach reach) override;
  Result<> walk(SnapshotNumber at, std::string_view prefix, std::string_view from, const Visitor& visitor,
                Reach reach, std::string& reached) override;
  Result<Sequence> write(const Batch& batch, CommitKind kind) override;
  void fetch(std::vector<Wanted> wanted, Arrived done) override;
  void make_checkpoint(SnapshotNumber number, std::function<void(Result<>)> done) override;

 private:
  // A record on its way: appended, then logged, then in the base.
  struct Pending {
    LogRecord record;
    size_t bytes = 0;                    // of it, encoded
    Sequence last = 0;                   // the newest commit in it, or before it
    std::function<void(Result<>)> done;  // of what is no batch; null: nobody waits for it any more
    LogPoint end;                        // once it is logged: not before that of its value
    std::optional<Result<>> copied;      // a checkpoint, by the base
  };

  void end_turn();
  void append(Pending pending);
  void on_logged(const Logged& logged);
  void take_logged(const Logged& logged);
  void bring();
  void bring_later(Milliseconds delay);
  bool can_apply() const { return !copying_ && !pending_.empty() && pending_.front().end.position != 0; }
  // Brings into the base what is logged, and stops behind so many operations. EAGAIN: the base takes nothing now.
  Result<> apply(size_t operations_max);
  // So many operations at most, but one record.
  Result<size_t> apply_batches(size_t operations_max);
  Result<> apply_checkpoint();
  void apply_drop();
  // For the base's row, when so many of those that are pending are in it.
  LogPoint end_behind(size_t count) const;
  Result<> commit_to_base(Batch batch, const LogPoint& end);
  void watch_medium();
  void pop_front();
  void progress();
  bool check_lead();
  void fail_for_good(const Error& error);

  EventLoop& loop_;
  const std::unique_ptr<KeyValueStore> base_;
  const std::unique_ptr<Log> log_;
  const Options options_;
  std::optional<Error> failure_;
  Overlay overlay_;
  Batch turn_;  // what was committed in this turn
  size_t turn_bytes_ = 0;
  bool turn_ends_ = false;
  std::deque<Pending> pending_;
  size_t pending_bytes_ = 0;
  uint64_t logged_records_ = 0;
  uint64_t applied_records_ = 0;  // pending_ begins behind them
  LogPoint applied_;              // what the base's row says
  Sequence base_newest_ = 0;      // the base's commit that said so
  bool watches_medium_ = false;
  bool copying_ = false;  // the base makes a checkpoint
  bool brings_later_ = false;
  Sequence last_ = 0;
  Sequence logged_ = 0;
  Sequence synced_ = 0;  // told to all who waited for it
  bool goes_on_ = false;
  SyncWaiters waiters_;
  Lifetime lifetime_;
};

}  // namespace pnfsrdma::mds
