// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "shared/pmem/persistence.h"

namespace pnfsrdma::crash {

// How a client has its bytes made durable.
enum class Flush { kNative, kMessage, kLayoutCommit };

// What is broken on purpose: the canaries. A test that stays green with one of these is worthless.
struct Faults {
  bool skip_data_flushes = false;       // the brick answers persist calls and messages without flushing
  bool skip_zeroing = false;            // freed blocks and tails are called zero and are not
  bool skip_zero_flushes = false;       // they are zeroed, but not durably
  uint64_t skip_table_flush_every = 0;  // every n-th flush of the block table or superblock does nothing
  bool pretend_sync = false;            // the metadata says "durable" and is not
  bool commit_before_flush = false;     // fsync counts as done with LAYOUTCOMMIT, and flushes behind it
  std::optional<Flush> skipped_flush;   // fsync by this method flushes nothing
};

// The brick's way to its medium, with the faults. Does not own `inner`, which outlives the brick's process.
class FaultyPersistence final : public pmem::Persistence {
 public:
  // `data`: where the blocks begin; before it stand superblock and table.
  FaultyPersistence(pmem::Persistence& inner, const std::byte* data, const Faults& faults)
      : inner_(inner), data_(data), faults_(faults) {}

  void copy(std::byte* target, ByteSpan source) override { inner_.copy(target, source); }
  void zero(MutableByteSpan target) override {
    zeroed_ = target;
    if (!faults_.skip_zeroing || target.data() < data_) inner_.zero(target);
  }
  Result<> flush(ByteSpan memory) override {
    const bool is_data = memory.data() >= data_;
    if (is_data && faults_.skip_data_flushes) return {};
    if (is_data && faults_.skip_zero_flushes && memory.data() == zeroed_.data()) return {};
    if (!is_data && faults_.skip_table_flush_every > 0 &&
        ++table_flushes_ % faults_.skip_table_flush_every == 0) {
      return {};
    }
    return inner_.flush(memory);
  }
  Result<> fence() override { return inner_.fence(); }
  Durability durability() const override { return inner_.durability(); }
  bool blocks() const override { return inner_.blocks(); }

 private:
  pmem::Persistence& inner_;
  const std::byte* const data_;
  const Faults faults_;
  uint64_t table_flushes_ = 0;  // the loop's thread alone
  // What this thread has zeroed last: the flush behind it follows at once.
  static inline thread_local ByteSpan zeroed_;
};

}  // namespace pnfsrdma::crash
