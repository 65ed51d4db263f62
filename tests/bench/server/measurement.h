// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "shared/base/result.h"
#include "tests/bench/server/fleet.h"
#include "tests/bench/server/rows.h"

namespace pnfsrdma::bench {

// What one slice of time brought: one row, one server, one round. The first fifth of it is not counted.
struct Slice {
  uint64_t operations = 0;  // counted
  uint64_t done = 0;        // with those of the warm-up
  double seconds = 0;       // in which they ended (closed loop) or were due (open loop)
  double rate = 0;          // operations a second
  double p50_us = 0;        // of all calls of an operation
  double p99_us = 0;
  double max_us = 0;
  double offered = 0;       // open loop: operations a second that were due
  uint64_t unfinished = 0;  // open loop: due, and not done when no more was waited
  uint64_t delays = 0;      // DELAY and its like, each waited out within its operation
  double server_us = 0;     // processor time of the server for an operation; 0: not known
  double generator = 0;     // processor time of this thread by the clock: near 1 it is what is measured
};

// Each worker does one operation after the other.
Result<Slice> measure_closed(EventLoop& loop, Fleet& fleet, const Row& row, double seconds);

// Operations fall due at random times (Poisson) at this rate, each at a random client, whatever became of
// those before; a time is counted from when the operation was due, so an operation that had to wait for a
// slot of its client, or for this program, is one that took long (no coordinated omission).
Result<Slice> measure_open(EventLoop& loop, Fleet& fleet, const Row& row, double rate, double seconds);

}  // namespace pnfsrdma::bench
