// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/crash/images/faults.h"
#include "tests/crash/images/remains.h"

namespace pnfsrdma::crash {

enum class Engine { kMemory, kRocksdb };

struct Outcome {
  std::vector<std::string> problems;
  uint64_t cuts = 0;
  uint64_t operations = 0;  // that succeeded
  uint64_t refused = 0;
};

std::shared_ptr<Metadata> make_metadata(Engine engine, uint64_t seed);

// Random steps, the power cut at a random event of workload, check or recovery, opened again, checked, and
// on: `generations` times. Ends at the first problem. `restarts`: now and then one of the processes dies in
// between, memory stays.
Outcome run_random(uint64_t seed, Engine engine, int generations, bool restarts, const Faults& faults = {});

// The fixed workload, the power cut at each `every`th of its events from the `first` on, each image recovered
// and checked.
Outcome run_fixed(uint64_t seed, uint64_t first, uint64_t every, const Faults& faults = {});

}  // namespace pnfsrdma::crash
