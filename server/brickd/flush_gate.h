// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <span>

#include "server/brickd/boot_id.h"
#include "shared/base/bytes.h"
#include "shared/base/guarded.h"
#include "shared/base/result.h"
#include "shared/base/sync.h"
#include "shared/pmem/persistence.h"

namespace pnfsrdma::brick {

using Verifier = std::array<std::byte, 8>;

// Says to every client whether bytes it has not flushed can have been lost: the same verifier twice means no.
//
// It is derived from the pool's uuid, the host's boot and a count of unsafe events in the superblock. A
// restart of the process keeps it: the bytes stay in the page cache, the tmpfs or the PMEM. A reboot changes
// it, also on PMEM: what sat in CPU caches is gone. A flush that failed changes it: the kernel may have
// dropped the dirty pages. A pool in the process's own memory gets a new one each time through its new uuid.
Verifier make_verifier(const std::array<std::byte, 16>& uuid, const BootId& boot, uint64_t unsafe_events);

// All flushes of an open pool go through here, table and data, so that none can report success over bytes
// another one's failure lost: Linux tells a failed write-back to one msync of the file only, whichever comes
// next. Flushes that can fail (msync) therefore run in turns that succeed or fail as a whole, one turn at a
// time, and each answer takes its verifier after its turn. Those that wait while a turn runs share the next
// one (group commit): whoever is first in line flushes for all that fit. A large one goes to the end of the
// line with what is left of it, and the table's, for which every change and every claim waits, go to the
// front, in turns of their own. Thread-safe. Owned by the Brick.
class FlushGate {
 public:
  // `on_unsafe` is called in the flushing thread, with the new count, when a flush has failed.
  FlushGate(pmem::Persistence& persistence, const std::array<std::byte, 16>& uuid, const BootId& boot,
            uint64_t unsafe_events, std::function<void(const Error&)> on_unsafe);

  // Flushes and fences all ranges. An Error has changed the verifier before it is returned.
  Result<> persist(std::span<const ByteSpan> ranges);
  // The same, but an Error (ESTALE) too when the verifier is not `expected` any more: for flushes whose
  // answer has no room for one (native RDMA FLUSH), so that the client's connection ends and its next hello
  // tells it.
  enum class Place { kBack, kFront };
  Result<> persist_under(std::span<const ByteSpan> ranges, const Verifier& expected,
                         Place place = Place::kBack);

  // pmem::Persistence's.
  bool evict(ByteSpan memory) { return persistence_.evict(memory); }

  // One atomic load.
  Verifier verifier() const;
  // Flushes that wait for their turn, or for what a turn has left of them.
  size_t waiting();

 private:
  // One caller's flush, on his stack.
  struct Waiting {
    std::deque<ByteSpan> left;  // of its ranges, not taken into a turn yet
    std::optional<Result<>> result;
  };
  // Who flushes now, and who is next: front before back, each in the order they came.
  struct Line {
    bool busy = false;
    std::deque<Waiting*> front, back;
    const std::deque<Waiting*>& next() const { return front.empty() ? back : front; }
  };

  void count_unsafe_event();
  Result<> flush_all(std::span<const ByteSpan> ranges, Place place);
  Result<> flush_lines(std::span<const ByteSpan> ranges);
  void run_turn(Guarded<Line>::Lock& line);
  Result<> judged(Result<> flushed);

  pmem::Persistence& persistence_;
  const std::array<std::byte, 16> uuid_;
  const BootId boot_;
  const std::function<void(const Error&)> on_unsafe_;
  Guarded<Line> line_;
  Condition turn_ended_;
  Mutex counting_;
  uint64_t unsafe_events_;  // under counting_
  std::atomic<uint64_t> verifier_;
};

}  // namespace pnfsrdma::brick
