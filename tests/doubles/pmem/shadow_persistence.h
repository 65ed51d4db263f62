// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <set>

#include "shared/base/guarded.h"
#include "shared/base/random.h"
#include "shared/pmem/persistence.h"

namespace pnfsrdma::pmem {

// PMEM as it behaves in the worst lawful case: keeps, beside the live bytes, an image of what is certain to
// be durable, by 64-byte line. crash() makes an image that a power cut could leave behind. For tests and the
// simulator. Thread-safe like any Persistence; `memory` (line-aligned) must outlive it and hold still during
// crash().
class ShadowPersistence final : public Persistence {
 public:
  enum class Tear : uint8_t {
    kWholeLines,  // each line that is not durable is old or new
    kWords,       // each 8 bytes of it are
  };

  explicit ShadowPersistence(MutableByteSpan memory);

  void copy(std::byte* target, ByteSpan source) override;
  void zero(MutableByteSpan target) override;
  Result<> flush(ByteSpan memory) override;
  Result<> fence() override;
  Durability durability() const override { return Durability::kPower; }
  bool blocks() const override { return false; }

  // What a power cut now could leave: durable lines as they are; others old, new, or as they were when
  // flushed.
  Bytes crash(Random& random, Tear tear) const;

  // Called before each store, flush and fence, with its number from 1 on: where a test cuts the power.
  void on_step(std::function<void(uint64_t step)> hook) { hook_ = std::move(hook); }
  // Flush number `flush` (from 1 on) does nothing but claims to: the canary that a crash test must notice.
  void skip_flush(uint64_t flush) { skipped_flush_ = flush; }
  uint64_t flushes() const;

 private:
  struct State {
    Bytes durable;
    Bytes flushed;               // contents of lines as their last flush() saw them
    std::set<size_t> in_flight;  // lines flushed, waiting for a fence
    uint64_t steps = 0;
    uint64_t flushes = 0;
  };

  void step();

  MutableByteSpan memory_;
  std::function<void(uint64_t)> hook_;
  uint64_t skipped_flush_ = 0;
  mutable Guarded<State> state_;
};

}  // namespace pnfsrdma::pmem
