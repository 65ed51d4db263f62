// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "shared/base/bytes.h"
#include "shared/base/sync.h"
#include "shared/initiator/file/kept_memory.h"
#include "shared/initiator/file/range_set.h"

namespace pnfsrdma::initiator {

// Copies of what was written to one file beyond the server's end of file and is not committed: a layout that
// is lost takes those bytes with it (the server zeroes or frees what lies behind its end of file), and then
// they are written once more from here. What lies before the server's end of file needs no copy.
// Thread-safe; a write copies under the mutex.
class KeptWrites {
 public:
  explicit KeptWrites(KeptMemory& memory) : memory_(memory) {}
  ~KeptWrites() { clear(); }
  KeptWrites(const KeptWrites&) = delete;
  KeptWrites& operator=(const KeptWrites&) = delete;

  // Sets memory aside for such a write. False: there is none, or the writes lie too scattered; committing
  // helps.
  bool prepare(uint64_t offset, uint64_t length);
  // Takes a copy. Later bytes replace earlier ones.
  void keep(uint64_t offset, ByteSpan bytes);

  // Not needed any more: committed up to `end`; or written in another way.
  void forget_below(uint64_t end);
  void forget(uint64_t offset, uint64_t length);
  void clear();

  // Copies the first bytes that are kept, as many as are contiguous and `sink` takes; where they belong.
  // None: nothing is kept.
  std::optional<FileRange> first(MutableByteSpan sink) const;
  bool covers(uint64_t offset, uint64_t length) const;
  std::vector<FileRange> ranges() const;
  bool any() const { return any_.load(std::memory_order_acquire); }
  uint64_t bytes() const;  // of memory

 private:
  void free_unused();

  KeptMemory& memory_;
  mutable Mutex mutex_;
  std::map<uint64_t, KeptMemory::Chunk> chunks_;  // by offset / kChunkBytes
  RangeSet kept_{RangeSet::kExact};
  std::atomic<bool> any_ = false;
};

}  // namespace pnfsrdma::initiator
