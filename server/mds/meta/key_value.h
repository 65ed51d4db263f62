// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cerrno>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "server/mds/meta/pinned_reads.h"
#include "server/mds/meta/snapshot_keys.h"
#include "shared/base/latency_histogram.h"
#include "shared/base/result.h"

// The metadata engine: an ordered map of byte strings whose changes are committed in atomic batches. The
// shape is what embedded engines (RocksDB) and distributed ones (etcd, FoundationDB, TiKV) have in common.
namespace pnfsrdma::mds {

// Numbers commits of one opened store: 1, 2, 3 … in order. 0: nothing committed yet.
using Sequence = uint64_t;

// Puts and erases that take effect together, or not at all. A later operation on a key wins over an earlier
// one. Two allocations however many operations.
class Batch {
 public:
  void put(std::string_view key, std::string_view value) { add(key, value, true); }
  void erase(std::string_view key) { add(key, {}, false); }
  // Everything of `other`, behind what is here.
  void append(const Batch& other);

  // It is small, and there will be more room on the medium behind it: the store takes it where it is full for others.
  void mark_makes_room() { makes_room_ = true; }
  bool makes_room() const { return makes_room_; }

  bool empty() const { return entries_.empty(); }
  size_t size() const { return entries_.size(); }

  // Calls put(key, value) or erase(key) for each operation in order.
  template <typename Put, typename Erase>
  void for_each(Put put, Erase erase) const {
    size_t at = 0;
    for (const Entry& entry : entries_) {
      const std::string_view key(bytes_.data() + at, entry.key_size);
      at += entry.key_size;
      if (!entry.is_put) {
        erase(key);
        continue;
      }
      put(key, std::string_view(bytes_.data() + at, entry.value_size));
      at += entry.value_size;
    }
  }

 private:
  struct Entry {
    uint32_t key_size;
    uint32_t value_size;
    bool is_put;
  };
  void add(std::string_view key, std::string_view value, bool is_put);

  std::string bytes_;
  std::vector<Entry> entries_;
  bool makes_room_ = false;
};

// Those that wait for a commit to be durable.
enum class CommitKind {
  kNamespace,  // replies wait for it: synced as soon as can be
  kState,      // nobody waits: survives the death of the process at once, of the host within kStateSyncMsMax
};

inline constexpr uint32_t kStateSyncMsMax = 5000;

// How much room the store's medium has, as of a moment ago.
struct StoreRoom {
  uint64_t total = 0;     // bytes of the file system; 0: not known
  uint64_t free = 0;      // of them, a reserve not counted
  double used_share = 0;  // of what is not reserve
  bool full = false;      // whoever would make something new gets ENOSPC; reads and removals go on
  bool stopped = false;   // even removals wait until there is room
};

// How far a read goes for a row.
enum class Reach {
  kMemory,  // kNotAtHand for what is not there
  kMedium,  // waits for the medium
};

// The error of a read that would have to wait for the medium, in a request that can be run again
// (request_reads.h), and of a commit behind it. Nobody but that request's owner sees it.
inline constexpr int kNotAtHand = EINPROGRESS;

// What reads have cost since the store was opened.
struct ReadCounts {
  uint64_t misses = 0;    // rows and parts of scans that were not in memory
  uint64_t fetches = 0;   // for requests, outside of the loop
  uint64_t blocking = 0;  // misses that were read in the loop
  LatencyHistogram fetch_latency;
};

class RequestReads;

// An open store. All methods belong to the control-loop thread. What was committed is seen by reads at once;
// it is durable in order: a crash keeps a prefix of the commits, of both kinds, at least up to
// synced_sequence().
//
// Checkpoints are copies of all rows, one for each snapshot, which never change. A key of an inode of a snapshot
// (snapshot_keys.h) is read in that snapshot's checkpoint, and what a scan of such keys visits has the snapshot's
// number, too; the values are as they were. All other keys, and prefixes that name no inode, are the live rows'.
class KeyValueStore {
 public:
  virtual ~KeyValueStore() = default;

  // nullopt: no such key. Errors: EIO and what else the medium gives (of a key in a snapshot: its checkpoint is not
  // there, or is damaged); in a request that can be run again kNotAtHand. Everywhere else a row that is not in memory
  // is waited for, and counted.
  Result<std::optional<std::string>> get(std::string_view key);

  // Visits keys that begin with `prefix`, in byte order, from the first that is not less than `from` (which
  // may be empty), until the visitor returns false. The visitor may read and commit; whether the scan sees
  // that is open. Errors as of get(); some keys may have been visited then.
  using Visitor = std::function<bool(std::string_view key, std::string_view value)>;
  Result<> scan(std::string_view prefix, std::string_view from, const Visitor& visitor);

  // Never waits for the medium. EAGAIN: the engine would have to stall the writer, or its medium is full, or a
  // checkpoint is being made; nothing was written, try later. EROFS: a key of a snapshot. EIO: an earlier sync failed;
  // the store takes no more commits and must be reopened.
  Result<Sequence> commit(const Batch& batch, CommitKind kind);

  // The newest commit of kind kNamespace. Every reply, a read-only one too, may have seen it and so waits for
  // it.
  virtual Sequence last_namespace_sequence() const = 0;
  // The newest commit of any kind.
  virtual Sequence last_sequence() const = 0;
  // All commits up to this one are durable.
  virtual Sequence synced_sequence() const = 0;
  // Runs `callback` in the control loop, at the end of a turn, once `sequence` is durable; never from inside
  // the call. Callbacks run in the order of their sequences. After a failed sync, and after close(), the
  // waiting ones never run.
  virtual void when_synced(Sequence sequence, std::function<void()> callback) = 0;

  // All commits up to this one survive the death of the process. Otherwise some of them are in the engine's own memory,
  // until the end of the turn: a reply that may have seen them waits for that.
  virtual bool written(Sequence) const { return true; }
  // Runs `callback` when all that was committed before the call is written, with an engine of this host at the end of
  // this turn. Not to be called where written() says so already. After a failure the waiting ones never run.
  virtual void when_written(std::function<void()> callback) { callback(); }

  virtual StoreRoom room() const { return {}; }

  // The live rows as the engine has them now, for another thread: they do not change. Goes before the store is closed.
  // A store behind a log has nothing in it that waits for the log.
  virtual std::unique_ptr<KeyValueStore> still() = 0;

  // Writes out in the background what checkpoint() would have to write out while it refuses commits: before
  // whoever takes a snapshot lets others wait for it. A hint: it has no errors.
  virtual void prepare_checkpoint(std::function<void()> done) = 0;
  // Makes a copy of what is committed, and of nothing else: from the call until `done` commits get EAGAIN. It is
  // durable then, under this number; on an error there is none. One at a time: EBUSY. EEXIST, ENOSPC, EIO.
  void checkpoint(SnapshotNumber number, std::function<void(Result<>)> done);
  bool makes_checkpoint() const { return makes_checkpoint_; }
  // Reads of it fail from now on, and its medium is given back in the background. One that is not there: no error.
  virtual void drop_checkpoint(SnapshotNumber number, std::function<void(Result<>)> done) = 0;
  // Removes all others, half made ones too. Blocks: for a start only.
  virtual Result<> keep_checkpoints(const std::set<SnapshotNumber>& kept) = 0;
  // `done` of these three is called in the loop, never from inside the call, and not after close() or
  // end_checkpoints().
  // For a shutdown, which may come while one is made: waits until nobody works at one, and takes commits again.
  virtual void end_checkpoints() { forget_checkpoint(); }

  // Waits until everything committed is durable. Blocks: for start and shutdown only.
  virtual Result<> sync() = 0;
  // Syncs and closes. Nothing but the destructor may be called afterwards.
  virtual Result<> close() = 0;

  const ReadCounts& read_counts() const { return read_counts_; }

 protected:
  // The engine's part. A store that has everything in memory never answers kNotAtHand. `at`: the checkpoint of that
  // snapshot, 0 for the live rows; keys are as they are there.
  virtual Result<std::optional<std::string>> read(SnapshotNumber at, std::string_view key, Reach reach) = 0;
  // With kNotAtHand `reached` is a key that all those visited are below, and none that was left out.
  virtual Result<> walk(SnapshotNumber at, std::string_view prefix, std::string_view from,
                        const Visitor& visitor, Reach reach, std::string& reached) = 0;
  virtual Result<Sequence> write(const Batch& batch, CommitKind kind) = 0;
  // Reads from the medium outside of the control loop what was committed before the call, and calls `done` in
  // the loop, never from inside: an answer for each that was wanted. Of a scan it brings as many rows as it
  // likes, one at least. After close() `done` need not be called.
  using Arrived = std::function<void(std::vector<Brought>)>;
  virtual void fetch(std::vector<Wanted> wanted, Arrived done) = 0;
  // No commit comes until `done`. EBUSY, which is no end of the first one: another one is being made.
  virtual void make_checkpoint(SnapshotNumber number, std::function<void(Result<>)> done) = 0;
  // For one whose `done` will not be called.
  void forget_checkpoint() { makes_checkpoint_ = false; }

 private:
  friend class RequestReads;
  friend class CheckpointView;
  friend class ReplicatedStore;
  Result<std::optional<std::string>> read_routed(std::string_view key, Reach reach);
  Result<> walk_routed(std::string_view prefix, std::string_view from, const Visitor& visitor, Reach reach,
                       std::string& reached);
  bool request_waits(std::string_view key, const std::string_view* prefix);
  void begin_fetch(std::vector<Wanted> wanted, Arrived done);

  RequestReads* request_ = nullptr;  // whose handler runs
  PinnedReads pinned_;
  ReadCounts read_counts_;
  bool makes_checkpoint_ = false;
};

}  // namespace pnfsrdma::mds
