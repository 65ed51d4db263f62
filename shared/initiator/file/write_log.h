// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "shared/base/clock.h"
#include "shared/base/sync.h"
#include "shared/initiator/brick/device.h"
#include "shared/initiator/file/range_set.h"
#include "shared/initiator/mds.h"

namespace pnfsrdma::initiator {

// What of a file's writes is not flushed yet: taken for a flush, put back when it fails.
struct Unflushed {
  RangeSet by_rdma;
  // The devices written to, with the verifier of the first write since the last flush.
  struct Written {
    Device* device = nullptr;
    BrickVerifier verifier{};
  };
  std::vector<Written> devices;
  RangeSet by_mds;
  WriteVerifier mds_verifier{};

  bool empty() const { return by_rdma.empty() && by_mds.empty(); }
  // Of what was written by RDMA.
  void remove(std::span<const FileRange> ranges);
};

// What the MDS has not been told yet: one LAYOUTCOMMIT's worth.
struct Uncommitted {
  uint64_t first = 0;  // everything written lies in [first, last)
  uint64_t last = 0;
  std::optional<uint64_t> size;  // the file has grown to this
  WallTime modified;
  // Under which layouts the growth was written: LayoutCache::lineage(), and the device's incarnation. Of
  // several the oldest.
  uint64_t lineage = 0;
  const Device* device = nullptr;
  uint32_t incarnation = 0;

  // There is growth, and its layouts are lost: the server has zeroed or freed what lies beyond its end of
  // file.
  bool growth_void(uint64_t lineage_now) const;
};

// The memory of one file's writes: sizes, what is to flush, what is to commit, what was lost. No wire calls.
// Thread-safe; a write takes its mutex once and allocates nothing in steady state.
class WriteLog {
 public:
  explicit WriteLog(uint64_t server_size) : server_size_(server_size) {}

  // A write that was confirmed on a connection with this verifier.
  // Not empty: these writes of before may be lost, with the verifier they were made under.
  std::vector<FileRange> wrote_rdma(const LayoutSegment& piece, uint64_t lineage,
                                    const BrickVerifier& verifier, WallTime now);
  bool wrote_mds(uint64_t offset, const MdsWritten& written);

  bool anything_unflushed() const;
  // Some of it on a device that does not answer just now.
  bool unflushed_on_resting_device() const;
  Unflushed take_unflushed();
  // Not empty: these ranges of it may be lost, the brick's verifier has changed since.
  std::vector<FileRange> put_back(Unflushed unflushed);

  // Nothing to tell: none. `committed()` or put_back() follows.
  std::optional<Uncommitted> take_uncommitted();
  void put_back(const Uncommitted& uncommitted);
  void committed(const Uncommitted& uncommitted, std::optional<uint64_t> new_size);
  // It cannot be told any more: the layout is gone. Not for growth.
  void abandon(const Uncommitted& uncommitted);
  // The growth's layout is gone, whatever its lineage says: it has to be restored.
  void put_back_void(Uncommitted uncommitted);
  // The brick may have lost what was grown and not flushed. False: all growth is committed, or just being so.
  bool doubt_growth();
  // What was grown and not committed has to be written once more (Uncommitted::growth_void()).
  bool growth_void(uint64_t lineage_now) const;
  // Written again through the MDS, while nobody writes by RDMA: the brick need not have it any more. That
  // holds for a flush that is under way, too.
  void replaced(std::span<const FileRange> ranges);
  // Since the last take_unflushed().
  bool was_replaced(uint64_t offset, uint64_t length) const;
  // All growth was written through the MDS, or (`lost`) is gone.
  void restored(bool lost);
  // How often that happened: what was flushed before has to be flushed again.
  uint64_t restorations() const;
  // A size is still to be told, or is being told now.
  bool grew() const;
  bool anything_uncommitted() const;

  // Writes are gone: every open file is told once.
  void lost(uint64_t count = 1);
  uint64_t losses() const;
  // An open file has been told of so many.
  void heard(uint64_t losses);
  // Where a new open file starts: before what no open file has heard of.
  uint64_t unheard_from() const;

  uint64_t size() const;
  uint64_t server_size() const { return server_size_.load(std::memory_order_acquire); }
  uint64_t version() const;
  // Ignored when something changed here since `asked_at`.
  void server_size(uint64_t size, uint64_t asked_at);
  void truncated(uint64_t size);
  std::optional<WallTime> modified() const;
  // Reserves room at the end for an append: the offset.
  uint64_t reserve_append(uint64_t length);

 private:
  void note_range(const LayoutSegment& piece, uint64_t lineage, WallTime now);
  void server_reaches(uint64_t end) { server_size_ = std::max(server_size_.load(), end); }

  mutable Mutex mutex_;
  std::atomic<uint64_t> server_size_;  // written under the mutex
  uint64_t written_end_ = 0;           // over server_size_ while the growth is not committed
  uint64_t append_end_ = 0;
  uint64_t version_ = 1;
  Unflushed unflushed_;
  RangeSet replaced_{RangeSet::kExact};
  std::optional<Uncommitted> uncommitted_;
  std::optional<Uncommitted> committing_;
  uint64_t losses_ = 0;
  uint64_t heard_ = 0;
  uint64_t restorations_ = 0;
};

}  // namespace pnfsrdma::initiator
