// SPDX-License-Identifier: Apache-2.0
#include "tests/crash/images/scenario.h"

#include <optional>

#include "shared/base/check.h"
#include "shared/base/log.h"
#include "tests/crash/images/checker.h"
#include "tests/crash/images/workload.h"

namespace pnfsrdma::crash {
namespace {

constexpr uint64_t kEventsMax = 600;  // until the power is cut, at most
constexpr int kStepsMax = 200;

void count(Outcome& outcome, const Client& client) {
  outcome.operations += client.done;
  outcome.refused += client.refused;
}

void maybe_restart(System& system, Client& client, SharedRandom& random) {
  if (random.below(8) != 0) return;
  if (random.below(2) == 0) {
    system.restart_brick();
    if (system.ready()) client.brick_lost();
  } else {
    system.restart_metadata_server();
    if (system.ready()) client.start();
  }
}

// From these remains to the next ones.
Remains run_generation(const Remains& before, uint64_t seed, bool restarts, const Faults& faults,
                       Outcome& outcome) {
  Power power;
  SharedRandom random(seed);
  Journal journal = before.journal;
  std::optional<Remains> after;
  System system(before, power, random.next_u64(), faults);
  const auto cut = [&] {
    if (system.power_is_off) return;
    after = system.remains(journal, random);
    system.power_is_off = true;
    ++outcome.cuts;
  };
  // Most cuts hit the workload, some the recovery.
  const bool early = random.below(4) == 0;
  if (early) power.arm(1 + random.below(60), cut);
  Client client(system, journal, faults);
  const auto problems = Checker(system, client, journal).check();
  if (!system.power_is_off) outcome.problems = problems;
  if (!system.power_is_off) power.arm(1 + random.below(kEventsMax), cut);
  Workload workload(client, journal, random);
  for (int step = 0; outcome.problems.empty() && !system.power_is_off && step < kStepsMax; ++step) {
    workload.random_step();
    if (restarts && !system.power_is_off) maybe_restart(system, client, random);
  }
  count(outcome, client);
  // Between two steps, if it has not come to it before.
  const Power::Lock lock(power.mutex());
  cut();
  return std::move(*after);
}

std::vector<std::string> examine(const Remains& remains, uint64_t seed) {
  Power power;
  Journal journal = remains.journal;
  System system(remains, power, seed, {}, System::Use::kToLookAt);
  Client client(system, journal);
  return Checker(system, client, journal).check();
}

}  // namespace

std::shared_ptr<Metadata> make_metadata(Engine engine, uint64_t seed) {
  if (engine == Engine::kMemory) return std::make_shared<MemoryMetadata>();
  return std::make_shared<RocksdbMetadata>(seed);
}

Outcome run_random(uint64_t seed, Engine engine, int generations, bool restarts, const Faults& faults) {
  set_log_level(LogLevel::kOff);
  Outcome outcome;
  SharedRandom random(seed);
  Remains remains = System::fresh(random.next_u64(), make_metadata(engine, random.next_u64()));
  for (int generation = 0; generation < generations && outcome.problems.empty(); ++generation) {
    remains = run_generation(remains, random.next_u64(), restarts, faults, outcome);
  }
  if (outcome.problems.empty()) outcome.problems = examine(remains, random.next_u64());
  return outcome;
}

Outcome run_fixed(uint64_t seed, uint64_t first, uint64_t every, const Faults& faults) {
  set_log_level(LogLevel::kOff);
  Outcome outcome;
  SharedRandom random(seed);
  Power power;
  Journal journal;
  System system(System::fresh(random.next_u64(), make_metadata(Engine::kMemory, 0)), power, random.next_u64(),
                faults);
  Client client(system, journal, faults);
  CHECK(system.ready() && client.start());
  Workload workload(client, journal, random);
  std::vector<Remains> found;
  power.arm(first, [&] { found.push_back(system.remains(journal, random)); }, every);
  for (int step = 0; step < Workload::kSteps; ++step) {
    workload.fixed_step(step);
    std::vector<Remains> images;
    {
      const Power::Lock lock(power.mutex());
      images.swap(found);
    }
    for (const Remains& image : images) {
      ++outcome.cuts;
      for (const std::string& problem : examine(image, random.next_u64())) {
        outcome.problems.push_back("step " + std::to_string(step) + ": " + problem);
      }
    }
  }
  power.disarm();
  count(outcome, client);
  return outcome;
}

}  // namespace pnfsrdma::crash
