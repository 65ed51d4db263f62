// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>

#include "shared/base/bytes.h"

namespace pnfsrdma::crash {

inline constexpr uint64_t kGrain = 4096;
inline constexpr uint64_t kWord = 8;

// What stands in each 8 bytes a file holds: memory tears between them, never inside. Zero was never written.
struct Word {
  uint16_t serial = 0;      // of the file: one per creation
  uint16_t grain = 0;       // its place in the file
  uint32_t generation = 0;  // 24 bits: of the write
  uint8_t place = 0;        // in the grain

  bool operator==(const Word&) const = default;
};

inline uint8_t place_of(uint64_t offset) {
  return static_cast<uint8_t>((offset % kGrain / kWord * 37 & 0x7f) | 0x80);
}
inline uint64_t encode(const Word& word) {
  return uint64_t{word.serial} << 48 | uint64_t{word.grain} << 32 | uint64_t{word.generation} << 8 |
         word.place;
}
inline Word decode(uint64_t bits) {
  return {static_cast<uint16_t>(bits >> 48), static_cast<uint16_t>(bits >> 32),
          static_cast<uint32_t>(bits >> 8 & 0xffffff), static_cast<uint8_t>(bits)};
}

// What a write of whole words at `offset` puts there.
inline void fill(MutableByteSpan bytes, uint16_t serial, uint64_t offset, uint32_t generation) {
  for (uint64_t at = 0; at + kWord <= bytes.size(); at += kWord) {
    const uint64_t bits =
        encode({serial, static_cast<uint16_t>((offset + at) / kGrain), generation, place_of(offset + at)});
    std::memcpy(bytes.data() + at, &bits, kWord);
  }
}

}  // namespace pnfsrdma::crash
