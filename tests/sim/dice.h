// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>

namespace pnfsrdma::sim {

// Every choice of a run comes from dice that the seed has thrown (splitmix64).
class Dice {
 public:
  explicit Dice(uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15u + 1) {}

  uint64_t next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  // From 0 up to and without `limit`.
  uint64_t below(uint64_t limit) { return limit == 0 ? 0 : next() % limit; }
  // Both ends included.
  uint64_t between(uint64_t low, uint64_t high) { return low + below(high - low + 1); }
  bool one_in(uint64_t count) { return below(count) == 0; }
  bool percent(uint64_t chance) { return below(100) < chance; }
  std::chrono::microseconds microseconds(uint64_t low, uint64_t high) {
    return std::chrono::microseconds(between(low, high));
  }

 private:
  uint64_t state_;
};

}  // namespace pnfsrdma::sim
