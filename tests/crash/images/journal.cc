// SPDX-License-Identifier: Apache-2.0
#include "tests/crash/images/journal.h"

#include <fmt/core.h>

#include <algorithm>

#include "tests/crash/images/grain.h"

namespace pnfsrdma::crash {

uint32_t Journal::begin_write(uint16_t serial, uint64_t end) {
  File& file = files[serial];
  file.size_high = std::max(file.size_high, end);
  return ++generation;
}

void Journal::synced(uint16_t serial, const std::map<uint64_t, uint32_t>& grains, uint64_t size) {
  File& file = files[serial];
  file.size_low = std::max(file.size_low, size);
  file.size_high = std::max(file.size_high, size);
  for (const auto& [grain, written] : grains) file.least[grain] = std::max(file.least[grain], written);
}

void Journal::begin_truncate(uint16_t serial, uint64_t size) {
  files[serial].cutting = Cut{size, generation};
}

void Journal::truncated(uint16_t serial) {
  const uint64_t size = files[serial].cutting->size;
  files[serial].cutting.reset();
  ends_at(serial, size);
}

void Journal::ends_at(uint16_t serial, uint64_t size) {
  File& file = files[serial];
  file.size_low = file.size_high = size;
  file.cuts.push_back({size, generation});
  std::erase_if(file.least, [&](const auto& entry) { return entry.first * kGrain >= size; });
}

std::string Journal::judge(uint16_t serial, uint64_t offset, uint64_t bits) const {
  const auto found = files.find(serial);
  if (found == files.end()) return "a file nobody made";
  const File& file = found->second;
  uint32_t cut = 0;  // words here of generations up to it are gone
  for (const Cut& each : file.cuts) {
    if (offset >= each.size) cut = std::max(cut, each.generation);
  }
  const auto least = file.least.find(offset / kGrain);
  const bool promised = least != file.least.end() && least->second > cut;
  if (bits == 0) {
    return promised ? fmt::format("zeros, generation {} was synced", least->second) : std::string();
  }
  const Word word = decode(bits);
  if (word.serial != serial || word.grain != offset / kGrain || word.place != place_of(offset)) {
    return fmt::format("holds {:016x}: file {} grain {} generation {}", bits, word.serial, word.grain,
                       word.generation);
  }
  if (promised && word.generation < least->second) {
    return fmt::format("generation {}, {} was synced", word.generation, least->second);
  }
  if (word.generation <= cut) return fmt::format("generation {}, cut off at {}", word.generation, cut);
  if (word.generation > generation) return fmt::format("generation {} was never written", word.generation);
  return {};
}

}  // namespace pnfsrdma::crash
