// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "server/console/inventory.h"

namespace pnfsrdma::console {

// What happened in some time. Counters only: two of them make the one of both times, exactly.
struct Amounts {
  uint64_t covered_ms = 0;  // the time it was counted over; 0: nothing is known
  uint64_t operations = 0;
  uint64_t mds_read_bytes = 0;
  uint64_t mds_write_bytes = 0;
  uint64_t rdma_read_bytes = 0;
  uint64_t rdma_write_bytes = 0;
  uint64_t rdma_reads = 0;
  uint64_t rdma_writes = 0;
  uint64_t used_bytes = 0;  // not counted: as it was at the end

  Amounts& operator+=(const Amounts& later);
  bool operator==(const Amounts&) const = default;
};

// The ranges people ask for, each with the step that makes kHistoryPoints of it.
struct HistoryRange {
  const char* name;
  uint32_t step_seconds;
};
inline constexpr size_t kHistoryPoints = 180;
inline constexpr std::array<HistoryRange, 4> kHistoryRanges{
    {{"15m", 5}, {"1h", 20}, {"6h", 120}, {"24h", 480}}};

// One value of what happened for each step of a range, the newest last. In bounded memory: a place belongs to the
// step that wrote it last, whatever the wall clock does meanwhile. Without I/O and without a clock of its own.
template <typename Value>
class HistoryRing {
 public:
  explicit HistoryRing(uint32_t step_seconds) : step_(step_seconds) {}

  // `second` since the epoch: when it ended.
  void add(int64_t second, const Value& value) {
    if (places_.empty()) places_.resize(kHistoryPoints);
    const int64_t step = second / step_;
    Place& place = places_[static_cast<size_t>(step) % kHistoryPoints];
    if (place.step != step) place = {step, {}};
    place.value += value;
  }
  // kHistoryPoints of them; none where nothing was added. The last step is the one that `now` is in.
  std::vector<std::optional<Value>> until(int64_t now) const {
    std::vector<std::optional<Value>> found(kHistoryPoints);
    for (const Place& place : places_) {
      const int64_t back = now / step_ - place.step;
      if (place.step >= 0 && back >= 0 && back < static_cast<int64_t>(kHistoryPoints))
        found[kHistoryPoints - 1 - static_cast<size_t>(back)] = place.value;
    }
    return found;
  }
  uint32_t step_seconds() const { return step_; }
  // When the first of the steps of until(now) begins.
  int64_t first_second(int64_t now) const {
    return (now / step_ - static_cast<int64_t>(kHistoryPoints) + 1) * step_;
  }

 private:
  struct Place {
    int64_t step = -1;  // since the epoch; -1: never written
    Value value;
  };
  uint32_t step_;
  std::vector<Place> places_;  // none before the first value
};

}  // namespace pnfsrdma::console
