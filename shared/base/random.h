// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace pnfsrdma {

// Where tickets, ids, verifiers and STags come from. Thread-safe.
class Random {
 public:
  virtual ~Random() = default;
  virtual void fill(std::span<std::byte> bytes) = 0;

  uint64_t next_u64();
  uint32_t next_u32();
};

// The kernel's CSPRNG (getrandom(2)): the only one a daemon may use.
class SystemRandom final : public Random {
 public:
  void fill(std::span<std::byte> bytes) override;
};

}  // namespace pnfsrdma
