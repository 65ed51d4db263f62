// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "shared/base/bytes.h"

namespace pnfsrdma::initiator {

class UnstableMemory;

// A copy of what one WRITE brought. Its share of the limit ends with it.
class UnstableBytes {
 public:
  UnstableBytes(UnstableMemory& memory, ByteSpan bytes)
      : memory_(memory), bytes_(bytes.begin(), bytes.end()) {}
  ~UnstableBytes();
  UnstableBytes(const UnstableBytes&) = delete;
  UnstableBytes& operator=(const UnstableBytes&) = delete;
  ByteSpan bytes() const { return bytes_; }

 private:
  UnstableMemory& memory_;
  const Bytes bytes_;
};
using UnstableCopy = std::shared_ptr<const UnstableBytes>;

// What a mount keeps of that, up to a limit. Thread-safe; lives longer than the copies.
class UnstableMemory {
 public:
  // `limit`: bytes.
  explicit UnstableMemory(uint64_t limit) : limit_(limit) {}

  // Null: the limit is reached, write what is stable at once.
  UnstableCopy copy(ByteSpan bytes);
  uint64_t used() const { return used_.load(std::memory_order_relaxed); }  // bytes
  uint64_t limit() const { return limit_; }

 private:
  friend class UnstableBytes;
  // What a small copy costs beside its bytes.
  static constexpr uint64_t kOverhead = 256;
  static uint64_t cost(ByteSpan bytes) { return bytes.size() + kOverhead; }

  const uint64_t limit_;
  std::atomic<uint64_t> used_ = 0;
};

}  // namespace pnfsrdma::initiator
