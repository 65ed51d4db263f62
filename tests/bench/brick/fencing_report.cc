// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "tests/bench/brick/fencing.h"

namespace pnfsrdma::bench {
namespace {

// A bystander notices nothing when 99 of 100 of its operations take no longer in the moments after a
// decision than before it, but for what one turn of the scheduler costs.
constexpr double kNoticeableFactor = 2;
constexpr double kNoticeableUs = 20000;

bool notices(Fencing::Neighbour& neighbour) {
  return neighbour.errors > 0 ||
         neighbour.during.at(99) > neighbour.before.at(99) * kNoticeableFactor + kNoticeableUs;
}

const char* to_string(Ending ending) {
  return ending == Ending::kExpel ? "client expelled" : "grant withdrawn";
}

void print_row(FencingRow& row) {
  fmt::print("{:<12} {:<16} {:>6} {:>10.2f} {:>8.2f} {:>10.2f} {:>8.2f} {:>8} {:>6} {:>8}{}\n",
             to_string(row.behaviour), to_string(row.ending), row.rounds, row.announced.at(50) / 1000,
             row.announced.at(99) / 1000, row.refused.at(50) / 1000, row.refused.at(99) / 1000, row.retries,
             row.late_writes, row.late_changes,
             row.sound() ? "" : fmt::format("  UNSOUND ({} never refused)", row.never_refused));
  std::fflush(stdout);
}

nlohmann::json to_json(FencingRow& row) {
  return {{"behaviour", to_string(row.behaviour)},
          {"ending", to_string(row.ending)},
          {"rounds", row.rounds},
          {"announced_p50_us", row.announced.at(50)},
          {"announced_p99_us", row.announced.at(99)},
          {"refused_p50_us", row.refused.at(50)},
          {"refused_p99_us", row.refused.at(99)},
          {"retries", row.retries},
          {"late_writes", row.late_writes},
          {"late_changes", row.late_changes},
          {"never_refused", row.never_refused},
          {"sound", row.sound()}};
}

void print_neighbour(Fencing::Neighbour& neighbour) {
  fmt::print("{:<8} {:>8} {:>10.2f} {:>8.2f} {:>10} {:>10.2f} {:>8.2f} {:>8}{}\n", neighbour.what,
             neighbour.before.count(), neighbour.before.at(50) / 1000, neighbour.before.at(99) / 1000,
             neighbour.during.count(), neighbour.during.at(50) / 1000, neighbour.during.at(99) / 1000,
             neighbour.errors, notices(neighbour) ? "  NOTICES" : "");
}

struct Report {
  bool json;
  bool sound = true;
  nlohmann::json rows = nlohmann::json::array(), neighbours = nlohmann::json::array();

  void head() const {
    if (json) return;
    fmt::print(
        "milliseconds since the decision\n{:<12} {:<16} {:>6} {:>10} {:>8} {:>10} {:>8} {:>8} {:>6} {:>8}\n",
        "client", "decision", "rounds", "answer p50", "p99", "refuse p50", "p99", "retries", "late",
        "changed");
  }
  void add(FencingRow& row) {
    sound = sound && row.sound();
    if (!json) return print_row(row);
    rows.push_back(to_json(row));
  }
  void add(std::vector<Fencing::Neighbour> all) {
    if (!json) {
      fmt::print(
          "\nthe other clients: 4 KiB, milliseconds\n{:<8} {:>8} {:>10} {:>8} {:>10} {:>10} {:>8} {:>8}\n",
          "", "before", "p50", "p99", "200 ms", "p50", "p99", "errors");
    }
    for (auto& neighbour : all) {
      sound = sound && !notices(neighbour);
      if (!json) print_neighbour(neighbour);
      neighbours.push_back({{"what", neighbour.what},
                            {"before_p99_us", neighbour.before.at(99)},
                            {"during_p99_us", neighbour.during.at(99)},
                            {"errors", neighbour.errors},
                            {"notices", notices(neighbour)}});
    }
  }
};

}  // namespace

int run_fencing(const BrickSettings& settings) {
  auto fencing = Fencing::prepare(settings);
  if (!fencing) {
    fmt::print(stderr, "bench-brick: {}\n", fencing.error().to_string());
    return 2;
  }
  Report report{settings.json};
  report.head();
  for (const NamedBehaviour& entry : kBehaviours) {
    // Only a queue pair of a device knows SEND with Invalidate.
    if (entry.behaviour == Behaviour::kInvalidates && settings.transport != "verbs") continue;
    for (const Ending ending : {Ending::kWithdraw, Ending::kExpel}) {
      auto row = (*fencing)->measure(entry.behaviour, ending, settings.rounds);
      if (!row) {
        fmt::print(stderr, "bench-brick: {}: {}\n", entry.name, row.error().to_string());
        return 2;
      }
      report.add(*row);
    }
  }
  report.add((*fencing)->neighbours());
  if (settings.json) {
    const nlohmann::json all{
        {"rows", report.rows}, {"neighbours", report.neighbours}, {"sound", report.sound}};
    fmt::print("{}\n", all.dump(2));
  }
  return report.sound ? 0 : 1;
}

}  // namespace pnfsrdma::bench
