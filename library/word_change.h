// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace pnfsrdma::library {

// What is to become of an aligned word of eight bytes, little-endian: pnfsrdma_atomic_write() and its like.
struct WordChange {
  enum class Kind : uint8_t { kStore, kCompareAndSwap, kFetchAndAdd };
  Kind kind = Kind::kStore;
  uint64_t offset = 0;
  uint64_t operand = 0;
  uint64_t expected = 0;  // by a comparison
  bool durable = false;   // when it returns
};

}  // namespace pnfsrdma::library
