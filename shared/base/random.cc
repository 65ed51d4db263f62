// SPDX-License-Identifier: Apache-2.0
#include "shared/base/random.h"

#include <sys/random.h>

#include <cerrno>
#include <cstring>

#include "shared/base/check.h"

namespace pnfsrdma {

uint64_t Random::next_u64() {
  uint64_t value = 0;
  fill(std::as_writable_bytes(std::span(&value, 1)));
  return value;
}

uint32_t Random::next_u32() {
  return static_cast<uint32_t>(next_u64());
}

void SystemRandom::fill(std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t got = getrandom(bytes.data(), bytes.size(), 0);
    CHECK(got > 0 || errno == EINTR);
    if (got > 0) bytes = bytes.subspan(static_cast<size_t>(got));
  }
}

void SeededRandom::fill(std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    // SplitMix64
    uint64_t mixed = (state_ += 0x9E3779B97F4A7C15u);
    mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9u;
    mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EBu;
    mixed ^= mixed >> 31;
    const size_t count = bytes.size() < sizeof mixed ? bytes.size() : sizeof mixed;
    std::memcpy(bytes.data(), &mixed, count);
    bytes = bytes.subspan(count);
  }
}

}  // namespace pnfsrdma
