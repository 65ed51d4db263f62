// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "shared/base/sync.h"
#include "shared/brick/session_codec.h"
#include "shared/initiator/brick/work_batch.h"

namespace pnfsrdma::initiator {

struct Connection;
struct Fabric;
class FlushChainPool;

// What a WRITE has written, both ways to name it.
struct FlushRange {
  brick::PersistTarget target;
  rdma::RemoteSlice memory;
};

// One flush for the WRITEs of several I/Os on one connection, posted behind all of them: a native FLUSH where the brick
// has that and the ranges lie close together in one grant, else a commit message that names them. One thread begins it,
// adds and closes; then it belongs to the connection, and when the flush is answered to its pool.
class FlushChain final : private BatchOwner {
 public:
  static constexpr size_t kRangesMax = 256;
  // Bytes between two ranges that are flushed along, rather than by a message.
  static constexpr uint64_t kGapMax = uint64_t{16} << 10;

  // One I/O's part. Its owner is told when the flush is answered, or never will be: batch_done(*batch).
  struct Member {
    BatchOwner* owner = nullptr;
    WorkBatch* batch = nullptr;  // of its WRITEs
    bool flushed = false;        // when it is told
    Member* next = nullptr;
  };

  explicit FlushChain(FlushChainPool& pool) : pool_(pool) {}

  // Keeps room for the flush. False: there is none, or nothing but the MDS flushes there.
  bool begin(std::shared_ptr<Connection> connection);
  const Connection* connection() const { return connection_.get(); }
  bool takes(std::span<const FlushRange> ranges) const;
  // Of WRITEs that have been posted; takes() has said yes.
  void add(Member& member, std::span<const FlushRange> ranges);
  // Posts the flush, with Doorbell::kLater. Nothing, if nothing was added.
  void close(Fabric& fabric);

 private:
  friend class FlushChainPool;

  // The smallest range with all of what it took.
  struct Hull {
    uint64_t begin = 0, end = 0;
    uint32_t key = 0;
    bool together = true;
    void take(const rdma::RemoteSlice& memory);
  };

  void batch_done(WorkBatch& batch) override;
  bool was_flushed(const WorkBatch& batch) const;
  void retire();

  FlushChainPool& pool_;
  std::shared_ptr<Connection> connection_;
  WorkItem item_;
  std::optional<WorkBatch> batch_;
  bool may_ask_ = false;  // the batch has room for a commit message
  Hull hull_;
  brick::SessionMessage message_ = brick::PersistCall();
  std::vector<brick::PersistTarget>& targets_ = std::get<brick::PersistCall>(message_).ranges;
  Member* members_ = nullptr;
  FlushChain* next_idle_ = nullptr;
};

// Chains that are used again and again; there are as many as were ever open at once. Outlives what uses them.
// Thread-safe.
class FlushChainPool {
 public:
  FlushChain& take();
  void give_back(FlushChain& chain);

 private:
  Mutex mutex_;
  std::vector<std::unique_ptr<FlushChain>> all_;
  FlushChain* idle_ = nullptr;
};

// The chains of one caller, who starts several durable writes in one go: one for each connection that they take. On the
// stack of its thread; posts the flushes as it goes.
class FlushChains {
 public:
  explicit FlushChains(Fabric& fabric) : fabric_(fabric) {}
  ~FlushChains();
  FlushChains(const FlushChains&) = delete;
  FlushChains& operator=(const FlushChains&) = delete;

  // The one that flushes these. Null: whoever asks flushes by himself.
  FlushChain* find(const std::shared_ptr<Connection>& connection, std::span<const FlushRange> ranges);

 private:
  static constexpr size_t kChainsMax = 8;

  Fabric& fabric_;
  std::array<FlushChain*, kChainsMax> open_{};
  size_t count_ = 0;
};

}  // namespace pnfsrdma::initiator
