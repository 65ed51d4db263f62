// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "shared/base/clock.h"
#include "shared/base/sync.h"

namespace pnfsrdma::initiator {

// Memory for writes that may have to be done once more (KeptWrites), of all files of a mount: chunks of one
// size, a bounded number of them. Chunks that were used go to the next taker, so that steady growth touches
// no fresh pages. Thread-safe.
class KeptMemory {
 public:
  // Small: every file that grows by a little takes one.
  static constexpr uint64_t kChunkBytes = uint64_t{64} << 10;
  using Chunk = std::unique_ptr<std::byte[]>;

  // `limit`: bytes; rounded down to whole chunks, one at least.
  explicit KeptMemory(uint64_t limit);

  // Null: the limit is reached. `over_limit`: for bytes that are written already and cannot wait.
  Chunk take(bool over_limit = false);
  void give_back(Chunk chunk);
  // False: there was no room until `deadline`. Another thread may be faster to take it.
  bool wait_for_room(SteadyTime deadline);

  uint64_t used() const;  // bytes
  uint64_t limit() const { return chunks_max_ * kChunkBytes; }

 private:
  const size_t chunks_max_;
  mutable Mutex mutex_;
  Condition room_;
  size_t used_ = 0;
  std::vector<Chunk> idle_;
};

}  // namespace pnfsrdma::initiator
