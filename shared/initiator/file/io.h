// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "shared/initiator/brick/work_batch.h"

namespace pnfsrdma::initiator {

class FlushChains;

enum class Direction { kRead, kWrite };

// kDataSync: as far as one round trip can do it, a WRITE includes its flush; a fdatasync() or fsync() behind
// it does the rest (a new size; what went through the MDS; a flush that failed). kMayBeHeld: under a write
// delegation it may be answered before it was sent.
enum class Stability { kMayBeHeld, kUnstable, kDataSync };

// What an I/O is. `attempt`: how often its connection has died. `end`: an append to where only we may write
// (LayoutCache::end()); its first bytes go under a layout and while that is so, or nothing does (ECANCELED).
struct Io {
  Direction direction = Direction::kRead;
  Stability stability = Stability::kUnstable;
  int attempt = 0;
  uint64_t end = 0;
  // Of one that its caller does not wait for: when it goes out, and what it may share its flush with.
  Doorbell doorbell = Doorbell::kNow;
  FlushChains* chains = nullptr;
};

// What is to become of an aligned word of eight bytes, little-endian. `durable`: when it is answered.
struct WordIo {
  brick::WordChange change = brick::WordChange::kStore;
  uint64_t operand = 0;
  uint64_t expected = 0;  // by a comparison
  bool durable = false;
};

}  // namespace pnfsrdma::initiator
