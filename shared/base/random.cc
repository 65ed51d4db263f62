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

}  // namespace pnfsrdma
