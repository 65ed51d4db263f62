// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>

#include "shared/base/random.h"

namespace pnfsrdma {

// The same bytes for the same seed (SplitMix64). Not thread-safe.
class SeededRandom final : public Random {
 public:
  explicit SeededRandom(uint64_t seed) : state_(seed) {}
  void fill(std::span<std::byte> bytes) override {
    while (!bytes.empty()) {
      uint64_t mixed = (state_ += 0x9E3779B97F4A7C15u);
      mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9u;
      mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EBu;
      mixed ^= mixed >> 31;
      const size_t count = bytes.size() < sizeof mixed ? bytes.size() : sizeof mixed;
      std::memcpy(bytes.data(), &mixed, count);
      bytes = bytes.subspan(count);
    }
  }

 private:
  uint64_t state_;
};

}  // namespace pnfsrdma
