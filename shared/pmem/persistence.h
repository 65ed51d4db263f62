// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "shared/base/bytes.h"
#include "shared/base/durability.h"
#include "shared/base/result.h"

namespace pnfsrdma::pmem {

// The unit in which PMEM becomes durable: a store is old or new after a power cut by 8 bytes, write-back is
// by line.
inline constexpr size_t kLine = 64;

// How bytes of one mapping become durable. A store is durable when a flush() that covers it and a fence() by
// the same thread have returned; before that it may be durable or not, line by line. Thread-safe: fence()
// speaks for the flushes of the calling thread.
class Persistence {
 public:
  virtual ~Persistence() = default;

  // Stores without reading the target, past the cache where that pays. Still needs flush() and fence().
  virtual void copy(std::byte* target, ByteSpan source) = 0;
  virtual void zero(MutableByteSpan target) = 0;

  // An Error (EIO, …) means that the range may have lost data that was never durable: the owner changes its
  // verifier.
  virtual Result<> flush(ByteSpan memory) = 0;
  virtual Result<> fence() = 0;
  Result<> persist(ByteSpan memory) {
    TRY(flush(memory));
    return fence();
  }
  // The same of all of them; with an Error of any that was made durable nothing is known.
  virtual Result<> persist_all(std::span<const ByteSpan> ranges) {
    for (const ByteSpan& range : ranges) TRY(flush(range));
    return fence();
  }

  // Behind a flush: drops it from the processor's caches, so that what is loaded next comes from the medium. False: it
  // comes from a copy in front of it (a page cache), or there is no medium.
  virtual bool evict(ByteSpan) { return false; }

  virtual Durability durability() const = 0;
  // flush() may wait for a disk (msync): not for a control loop.
  virtual bool blocks() const = 0;
};

}  // namespace pnfsrdma::pmem
