// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <optional>
#include <vector>

#include "server/console/inventory.h"
#include "server/console/json.h"
#include "shared/base/guarded.h"

namespace pnfsrdma::console {

// What happened in one interval.
struct Sample {
  uint64_t sequence = 0;
  WallTime time;
  uint64_t interval_ms = 0;
  uint64_t operations = 0;
  uint64_t errors = 0;
  uint64_t mds_read_bytes = 0;
  uint64_t mds_write_bytes = 0;
  BrickCounters bricks;
  double p50_us = 0;
  double p90_us = 0;
  double p99_us = 0;
  uint32_t clients = 0;
  uint32_t layouts = 0;
  uint32_t grants = 0;
  uint64_t layouts_granted = 0;
  uint64_t layouts_recalled = 0;
  uint64_t layouts_revoked = 0;
};

// Samples of the last ten minutes, for charts: made of the counters the control loop hands in once a second.
// Thread-safe.
class Throughput {
 public:
  void add(const Numbers& numbers);
  // Those behind `after` of the newest `count`, oldest first.
  std::vector<Sample> newest(uint64_t after, size_t count);

 private:
  static constexpr size_t kKept = 600;
  struct State {
    std::optional<Numbers> last;
    std::deque<Sample> samples;
    uint64_t next = 1;
  };
  Guarded<State> state_;
};

// The latency that `share` of the operations stayed below: interpolated within its bucket, microseconds.
double percentile(const LatencyHistogram& histogram, double share);
Json to_json(const Sample& sample);

}  // namespace pnfsrdma::console
