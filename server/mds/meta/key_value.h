// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

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
};

// Who waits for a commit to be durable.
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

// An open store. All methods belong to the control-loop thread. What was committed is seen by reads at once;
// it is durable in order: a crash keeps a prefix of the commits, of both kinds, at least up to
// synced_sequence().
class KeyValueStore {
 public:
  virtual ~KeyValueStore() = default;

  // nullopt: no such key. Errors: EIO and what else the medium gives.
  virtual Result<std::optional<std::string>> get(std::string_view key) = 0;

  // Visits keys that begin with `prefix`, in byte order, from the first that is not less than `from` (which
  // may be empty), until the visitor returns false. The visitor may read and commit; whether the scan sees
  // that is open.
  using Visitor = std::function<bool(std::string_view key, std::string_view value)>;
  virtual Result<> scan(std::string_view prefix, std::string_view from, const Visitor& visitor) = 0;

  // Never waits for the medium. EAGAIN: the engine would have to stall the writer, or its medium is full;
  // nothing was written, try later. EIO: an earlier sync failed; the store takes no more commits and must be
  // reopened.
  virtual Result<Sequence> commit(const Batch& batch, CommitKind kind) = 0;

  // The newest commit of kind kNamespace. Every reply, a read-only one too, may have seen it and so waits for
  // it.
  virtual Sequence last_namespace_sequence() const = 0;
  // All commits up to this one are durable.
  virtual Sequence synced_sequence() const = 0;
  // Runs `callback` in the control loop, at the end of a turn, once `sequence` is durable; never from inside
  // the call. Callbacks run in the order of their sequences. After a failed sync, and after close(), the
  // waiting ones never run.
  virtual void when_synced(Sequence sequence, std::function<void()> callback) = 0;

  virtual StoreRoom room() const { return {}; }

  // Waits until everything committed is durable. Blocks: for start and shutdown only.
  virtual Result<> sync() = 0;
  // Syncs and closes. Nothing but the destructor may be called afterwards.
  virtual Result<> close() = 0;
};

}  // namespace pnfsrdma::mds
