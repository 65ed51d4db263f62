// SPDX-License-Identifier: Apache-2.0
#include <sys/resource.h>
#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>

#include "shared/base/log.h"
#include "shared/base/log_observer.h"
#include "tests/sim/apart.h"
#include "tests/sim/world.h"

namespace {

using namespace pnfsrdma;

constexpr const char* kHelp =
    R"(sim: the client, and with --real-mds the MDS, in virtual time against faults by a seed (tests/sim/README.md)

usage: sim SEED [WORKLOAD]         replays one, with a trace
       sim [--from A] [--count N] [--keep-going] [WORKLOAD]
                                   runs N seeds from A on (1 from 1 on), each in a process of its own; 0: without end

  --keep-going      goes on behind a seed that failed

workload:
  --mixed           of five seeds three --sharing 0, one --sharing 1, one --sharing 2 --forks
  --sharing S       what clients do to each other's files: 0 nothing, 1 all but truncation, 2 anything
  --forks           a forked child closes descriptors that live on
  --appends         all clients, to the same logs
  --operations O    so many of them
  --real-mds        the MDS itself instead of the model of it
  --leases-end      short leases that end by themselves, --real-mds only; of --mixed it is each third five
  --disowned        the MDS forgets opens, without a word, --real-mds only
  --clones          files are cloned now and then, --real-mds only
  --snapshots       the administrator takes snapshots and deletes them, --real-mds only; of --mixed every second seed
                    with --clones
  --quotas          what users and groups have is counted, --real-mds only
  --revoked         the administrator revokes layouts, --real-mds only
  --delegations     clients read by delegations, --real-mds only; each third five seeds with --leases-end
  --no-faults

Exits with 1 when a seed failed, with 2 for what it does not know.
)";

constexpr rlim_t kProcessorSecondsMax = 20;  // a seed that turns in circles

struct Totals {
  uint64_t operations = 0, faults = 0, errors = 0, revocations = 0;
  sim::RealMds::DelegationCounts delegations;
  uint64_t opens_under_delegation = 0, held_writes = 0;
  sim::World::SnapshotCounts snapshots;
  double virtual_seconds = 0;
};

Totals run(const sim::RunOptions& options) {
  simulated::Scheduler scheduler(options.seed);
  Totals totals;
  scheduler.run(
      [&] {
        const SteadyTime began = scheduler.now();
        sim::World world(options);
        sim::run_workload(world);
        totals = {world.operations,
                  world.faults,
                  world.errors,
                  world.revocations(),
                  world.real_mds ? world.real_mds->delegations() : sim::RealMds::DelegationCounts(),
                  world.opens_under_delegation(),
                  world.held_writes(),
                  world.snapshot_counts,
                  std::chrono::duration<double>(scheduler.now() - began).count()};
      },
      [&](const std::string& waiting) {
        std::fprintf(stderr, "seed %llu: nobody can go on:\n%s",
                     static_cast<unsigned long long>(options.seed), waiting.c_str());
        _exit(1);
      });
  return totals;
}

void mix(sim::RunOptions& options) {
  options.sharing = options.seed % 5 == 0   ? sim::Sharing::kAnything
                    : options.seed % 5 == 4 ? sim::Sharing::kNoTruncation
                                            : sim::Sharing::kNone;
  if (options.snapshots) options.clones = options.seed % 2 == 0;
  if (options.delegations) options.sharing = sim::Sharing::kAnything;
  options.forks = options.seed % 5 == 0;
  options.leases_end = options.real_mds && options.seed / 5 % 3 == 1;
}

bool add_apart(const sim::RunOptions& options, Totals& sum) {
  const auto totals = sim::run_apart(options.seed, kProcessorSecondsMax, [&] { return run(options); });
  if (totals) {
    sum.operations += totals->operations;
    sum.faults += totals->faults;
    sum.errors += totals->errors;
    sum.revocations += totals->revocations;
    sum.delegations.granted += totals->delegations.granted;
    sum.delegations.recalled += totals->delegations.recalled;
    sum.delegations.revoked += totals->delegations.revoked;
    sum.opens_under_delegation += totals->opens_under_delegation;
    sum.held_writes += totals->held_writes;
    sum.snapshots.taken += totals->snapshots.taken;
    sum.snapshots.failed += totals->snapshots.failed;
    sum.snapshots.removed += totals->snapshots.removed;
    sum.snapshots.unknown += totals->snapshots.unknown;
    sum.snapshots.read += totals->snapshots.read;
    sum.virtual_seconds += totals->virtual_seconds;
  }
  return totals.has_value();
}

double processor_seconds() {
  rusage usage{};
  getrusage(RUSAGE_CHILDREN, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

int run_many(sim::RunOptions options, uint64_t count, bool keep_going, bool mixed) {
  Totals sum;
  uint64_t done = 0, failed = 0;
  for (const uint64_t first = options.seed; count == 0 || done < count; ++done) {
    options.seed = first + done;
    if (mixed) mix(options);
    if (!add_apart(options, sum)) ++failed;
    if (failed > 0 && !keep_going) {
      ++done;
      break;
    }
    if (done % 100 != 99 && done + 1 != count) continue;
    std::printf(
        "%llu seeds, %llu failed, %llu operations, %llu faults, %llu errors, %llu revocations, %.0f s of "
        "virtual time, %.3f s of processor a seed\n",
        static_cast<unsigned long long>(done + 1), static_cast<unsigned long long>(failed),
        static_cast<unsigned long long>(sum.operations), static_cast<unsigned long long>(sum.faults),
        static_cast<unsigned long long>(sum.errors), static_cast<unsigned long long>(sum.revocations),
        sum.virtual_seconds, processor_seconds() / static_cast<double>(done + 1));
    if (options.delegations) {
      std::printf(
          "  delegations: %llu granted, %llu recalled, %llu revoked, %llu opens and %llu held writes by "
          "them\n",
          static_cast<unsigned long long>(sum.delegations.granted),
          static_cast<unsigned long long>(sum.delegations.recalled),
          static_cast<unsigned long long>(sum.delegations.revoked),
          static_cast<unsigned long long>(sum.opens_under_delegation),
          static_cast<unsigned long long>(sum.held_writes));
    }
    if (options.snapshots) {
      std::printf(
          "  snapshots: %llu taken, %llu failed, %llu deleted, %llu that the MDS died with, %llu files "
          "read\n",
          static_cast<unsigned long long>(sum.snapshots.taken),
          static_cast<unsigned long long>(sum.snapshots.failed),
          static_cast<unsigned long long>(sum.snapshots.removed),
          static_cast<unsigned long long>(sum.snapshots.unknown),
          static_cast<unsigned long long>(sum.snapshots.read));
    }
    std::fflush(stdout);
  }
  if (failed > 0 && !keep_going)
    std::printf("found after %llu seeds\n", static_cast<unsigned long long>(done));
  return failed > 0 ? 1 : 0;
}

// What the command line asks for.
struct Wishes {
  sim::RunOptions options;
  uint64_t seeds = 1;
  uint64_t sharing = 0;
  bool keep_going = false;
  bool one = false;
  bool mixed = false;

  // Where the number behind this option goes; null: it has none.
  uint64_t* number(const std::string& name) {
    if (name == "--from") return &options.seed;
    if (name == "--count") return &seeds;
    if (name == "--operations") return &options.operations;
    if (name == "--sharing") return &sharing;
    return nullptr;
  }
  bool take(const std::string& name) {
    bool* const flag = name == "--forks"         ? &options.forks
                       : name == "--appends"     ? &options.appends
                       : name == "--mixed"       ? &mixed
                       : name == "--real-mds"    ? &options.real_mds
                       : name == "--leases-end"  ? &options.leases_end
                       : name == "--disowned"    ? &options.disowned
                       : name == "--revoked"     ? &options.revoked
                       : name == "--clones"      ? &options.clones
                       : name == "--snapshots"   ? &options.snapshots
                       : name == "--quotas"      ? &options.quotas
                       : name == "--delegations" ? &options.delegations
                       : name == "--no-faults"   ? &options.no_faults
                       : name == "--keep-going"  ? &keep_going
                                                 : nullptr;
    if (flag == nullptr) return false;
    *flag = true;
    if (flag == &options.appends || flag == &options.delegations)
      sharing = static_cast<uint64_t>(sim::Sharing::kAnything);
    return true;
  }
};

std::optional<uint64_t> number_of(const std::string& text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

int refuse(const std::string& what) {
  std::fprintf(stderr, "sim: %s: not understood; sim --help\n", what.c_str());
  return 2;
}

}  // namespace

int main(int count, char** arguments) {
  Wishes wishes;
  for (int i = 1; i < count; ++i) {
    const std::string name = arguments[i];
    if (name == "--help" || name == "-h") {
      std::fputs(kHelp, stdout);
      return 0;
    }
    bool understood = false;
    if (number_of(name)) {
      wishes.options.seed = *number_of(name);
      understood = wishes.one = true;
    } else if (uint64_t* const wanted = wishes.number(name)) {
      const auto value = i + 1 < count ? number_of(arguments[++i]) : std::nullopt;
      understood = value.has_value();
      *wanted = value.value_or(0);
    } else {
      understood = wishes.take(name);
    }
    if (!understood) return refuse(name);
  }
  if (wishes.sharing > static_cast<uint64_t>(sim::Sharing::kAnything)) return refuse("--sharing");
  sim::RunOptions& options = wishes.options;
  options.sharing = static_cast<sim::Sharing>(wishes.sharing);
  if (options.leases_end && !options.real_mds) return refuse("--leases-end without --real-mds");
  if (options.disowned && !options.real_mds) return refuse("--disowned without --real-mds");
  if (options.revoked && !options.real_mds) return refuse("--revoked without --real-mds");
  if (options.clones && !options.real_mds) return refuse("--clones without --real-mds");
  if (options.snapshots && !options.real_mds) return refuse("--snapshots without --real-mds");
  if (options.quotas && !options.real_mds) return refuse("--quotas without --real-mds");
  if (options.delegations && !options.real_mds) return refuse("--delegations without --real-mds");
  const bool one = wishes.one;
  // Written or not, the same steps: a trace must not change the run.
  set_log_level(LogLevel::kInfo);
  write_log_with([one](LogLevel, std::string_view component, std::string_view text) {
    if (one)
      std::fprintf(stderr, "                    %s: %s\n", std::string(component).c_str(),
                   std::string(text).c_str());
  });
  if (!one) return run_many(options, wishes.seeds, wishes.keep_going, wishes.mixed);
  if (wishes.mixed) mix(options);
  options.trace = true;
  const Totals totals = run(options);
  std::printf("seed %llu is well: %llu operations, %llu faults, %llu errors, %.1f s of virtual time\n",
              static_cast<unsigned long long>(options.seed),
              static_cast<unsigned long long>(totals.operations),
              static_cast<unsigned long long>(totals.faults), static_cast<unsigned long long>(totals.errors),
              totals.virtual_seconds);
  return 0;
}
