// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "shared/base/bytes.h"
#include "shared/base/sync.h"
#include "shared/initiator/file/kept_memory.h"
#include "shared/initiator/file/layout_pin.h"
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

  // Memory set aside for one such write, as long as it lives: what the write did not keep goes back.
  class Room {
   public:
    Room() = default;
    Room(Room&& other) noexcept : kept_(std::exchange(other.kept_, nullptr)), range_(other.range_) {}
    Room& operator=(Room&& other) noexcept;
    ~Room() { give_back(); }

   private:
    friend class KeptWrites;
    Room(KeptWrites& kept, FileRange range) : kept_(&kept), range_(range) {}
    void give_back();
    KeptWrites* kept_ = nullptr;
    FileRange range_;
  };
  // None: there is no memory, or the writes are too scattered; committing helps.
  std::optional<Room> set_aside(uint64_t offset, uint64_t length);
  // Takes a copy. Later bytes replace earlier ones.
  void keep(uint64_t offset, ByteSpan bytes);

  // Not needed any more: committed, or written in another way.
  void forget(uint64_t offset, uint64_t length);
  void clear();

  // Copies the first bytes of a range that are kept, as many as are contiguous and `sink` takes; where they
  // belong. None: nothing of it is kept.
  std::optional<FileRange> first(FileRange within, MutableByteSpan sink) const;
  bool covers(uint64_t offset, uint64_t length) const;
  std::vector<FileRange> ranges() const;
  bool any() const { return any_.load(std::memory_order_acquire); }
  uint64_t bytes() const;  // of memory

 private:
  struct Chunk {
    KeptMemory::Chunk bytes;
    uint32_t rooms = 0;  // writes under way that may need it
  };
  using Chunks = std::map<uint64_t, Chunk>;  // by offset / kChunkBytes

  void release(FileRange range);
  Chunks::iterator free_if_unused(Chunks::iterator at);
  void free_unused();

  KeptMemory& memory_;
  mutable Mutex mutex_;
  Chunks chunks_;
  RangeSet kept_{RangeSet::kExact};
  std::atomic<bool> any_ = false;
};

}  // namespace pnfsrdma::initiator
