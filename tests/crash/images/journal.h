// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace pnfsrdma::crash {

// What a client knows to be durable, and what it has begun: outside the system, and read by nobody in it. A
// value; copied when the power is cut.
struct Journal {
  using Names = std::map<std::string, uint16_t>;  // name -> serial of the file

  // All words from `size` on of generations up to this one are gone: a truncation, or an end of file that a
  // client learned of.
  struct Cut {
    uint64_t size = 0;
    uint32_t generation = 0;
  };
  struct File {
    uint64_t size_low = 0;   // acknowledged as durable
    uint64_t size_high = 0;  // may have become durable without that
    std::optional<Cut> cutting;
    std::vector<Cut> cuts;
    std::map<uint64_t, uint32_t> least;  // grain -> the oldest generation it may be found in
  };

  Names names;
  std::optional<Names> names_after;  // of the operation under way: all of it happens or nothing
  std::map<uint16_t, File> files;
  uint16_t last_serial = 0;
  uint32_t generation = 0;

  // Begun: [.., end) may be found longer or newer.
  uint32_t begin_write(uint16_t serial, uint64_t end);
  // Acknowledged as durable: these grains in these generations, and the file at least this long.
  void synced(uint16_t serial, const std::map<uint64_t, uint32_t>& grains, uint64_t size);

  void begin_truncate(uint16_t serial, uint64_t size);
  void truncated(uint16_t serial);
  // The server has ended a write past the end of file that was never committed, or a restart has: the file
  // ends at `size`.
  void ends_at(uint16_t serial, uint64_t size);

  void begin_names(Names after) { names_after = std::move(after); }
  void renamed() {
    names = std::move(*names_after);
    names_after.reset();
  }
  void not_renamed() { names_after.reset(); }

  // What is wrong with finding `bits` at `offset` of the file; empty if nothing.
  std::string judge(uint16_t serial, uint64_t offset, uint64_t bits) const;
};

}  // namespace pnfsrdma::crash
