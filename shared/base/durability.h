// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace pnfsrdma {

// What a byte survives once it has been flushed: of a mapping, of a brick, in GETDEVICEINFO. The numbers are
// on the wire and in records.
enum class Durability : uint32_t {
  kVolatile = 0,  // nothing: it dies with the memory (of the process, or tmpfs)
  kProcess = 1,   // the death of the process that has it (page cache), not the host's
  kPower = 2,     // loss of power
};
// For the XDR codec.
constexpr bool xdr_known(Durability value) {
  return value <= Durability::kPower;
}
constexpr const char* to_string(Durability value) {
  constexpr const char* kNames[] = {"volatile", "process", "power"};
  return xdr_known(value) ? kNames[static_cast<uint32_t>(value)] : "unknown";
}

}  // namespace pnfsrdma
