// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <pnfsrdma.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "library/bench/target.h"

namespace {

using namespace pnfsrdma::bench;

struct Row {
  const char* name;
  Action action;
  size_t length;
  unsigned depth;
};

constexpr Row kRows[] = {
    {"read 4 KiB", Action::kRead, 4096, 1},
    {"read 4 KiB", Action::kRead, 4096, 64},
    {"write 4 KiB", Action::kWrite, 4096, 1},
    {"write 4 KiB", Action::kWrite, 4096, 64},
    {"durable write 4 KiB", Action::kDurableWrite, 4096, 1},
    {"durable write 4 KiB", Action::kDurableWrite, 4096, 64},
    {"durable 16 x 64 B", Action::kChain, kChainRanges * 4096, 1},
    {"read 1 MiB", Action::kRead, size_t{1} << 20, 1},
    {"read 256 KiB", Action::kRead, size_t{256} << 10, 16},
    {"write 1 MiB", Action::kWrite, size_t{1} << 20, 1},
    {"write 256 KiB", Action::kWrite, size_t{256} << 10, 16},
};

struct Options {
  std::string source, connection, mount;
  std::vector<std::string> rows;  // names; none: all
  bool json = false;
  double seconds = 1;
  unsigned rounds = 3;
  uint64_t size_mib = 256;
};

// What one row did on one target, all rounds together.
struct Result {
  std::vector<double> rates;       // operations a second, by round
  std::vector<int64_t> latencies;  // nanoseconds
};

void run_round(Target& target, const Row& row, const Options& options, std::mt19937_64& random,
               Result& result) {
  const uint64_t places = (options.size_mib << 20) / row.length;
  const auto began = std::chrono::steady_clock::now();
  const auto end = began + std::chrono::duration_cast<std::chrono::nanoseconds>(
                               std::chrono::duration<double>(options.seconds));
  size_t count = 0;
  target.run(
      row.action, row.length, row.depth,
      [&]() -> int64_t {
        if (std::chrono::steady_clock::now() >= end) return -1;
        return static_cast<int64_t>(random() % places * row.length);
      },
      [&](int64_t nanoseconds) {
        ++count;
        result.latencies.push_back(nanoseconds);
      });
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - began;
  result.rates.push_back(static_cast<double>(count) / taken.count());
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

// "38,214": people read these.
std::string grouped(double value) {
  std::string digits = fmt::format("{:.0f}", value);
  for (size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, ",");
  return digits;
}

size_t bytes_of(const Row& row) {
  return row.action == Action::kChain ? kChainRanges * kChainBytes : row.length;
}

void print(const Row& row, const Target& target, Result& result, double beside, bool json) {
  std::ranges::sort(result.latencies);
  const auto at = [&](double share) {
    return static_cast<double>(result.latencies[static_cast<size_t>(
               share * static_cast<double>(result.latencies.size() - 1))]) /
           1000;
  };
  const double rate = median(result.rates);
  if (json) {
    const nlohmann::json object{{"row", row.name},   {"depth", row.depth},     {"by", target.name()},
                                {"a_second", rate},  {"bytes", bytes_of(row)}, {"p50_us", at(0.5)},
                                {"p99_us", at(0.99)}};
    fmt::print("{}\n", object.dump());
    (void)std::fflush(stdout);
    return;
  }
  const double mib = rate * static_cast<double>(bytes_of(row)) / (1 << 20);
  fmt::print("{:<20} {:>5} {:<8} {:>10} {:>9.0f} {:>9.1f} {:>9.1f} {:>8}\n", row.name, row.depth,
             target.name(), grouped(rate), mib, at(0.5), at(0.99),
             beside > 0 ? fmt::format("{:.2f}", rate / beside) : "");
  (void)std::fflush(stdout);
}

void print_head(pnfsrdma_client* client, const Options& options, bool beside_mount) {
  fmt::print("{}: data by {}, durability {}; {} rounds of {} s in turn, medians\n\n", options.source,
             pnfsrdma_transport(client), pnfsrdma_durability(client), options.rounds, options.seconds);
  fmt::print("{:<20} {:>5} {:<8} {:>10} {:>9} {:>9} {:>9} {:>8}\n", "", "depth", "by", "a second", "MiB/s",
             "p50 us", "p99 us", beside_mount ? ": mount" : "");
}

void bench(pnfsrdma_client* client, const Options& options) {
  std::vector<std::unique_ptr<Target>> targets;
  targets.push_back(make_library_target(client, options.source.starts_with('/') ? "ring" : "library",
                                        options.size_mib << 20));
  if (!options.mount.empty()) targets.push_back(make_mount_target(options.mount, options.size_mib << 20));
  if (!options.json) print_head(client, options, targets.size() > 1);
  std::mt19937_64 random(1);
  for (const Row& row : kRows) {
    if (!options.rows.empty() && std::ranges::find(options.rows, row.name) == options.rows.end()) continue;
    std::vector<Result> results(targets.size());
    for (unsigned round = 0; round < options.rounds; ++round) {
      for (size_t i = 0; i < targets.size(); ++i) run_round(*targets[i], row, options, random, results[i]);
    }
    const double mount = targets.size() > 1 ? median(results[1].rates) : 0;
    for (size_t i = 0; i < targets.size(); ++i)
      print(row, *targets[i], results[i], i == 0 ? mount : 0, options.json);
  }
}

}  // namespace

int main(int count, char** arguments) {
  Options options;
  CLI::App app(
      "Latency and rate of a pnfsrdma server by libpnfsrdma, and by a mount beside it. Files of its own, "
      "removed in the end.",
      "pnfsrdma-bench");
  app.set_version_flag("--version", std::string("pnfsrdma-bench ") + pnfsrdma_version());
  app.add_option("source", options.source, "a directory on a mount, or server:/path, as for mount(8)")
      ->required();
  app.add_option("mount", options.mount,
                 "a folder of a mount of the same server, to measure beside the library");
  app.add_option("-o", options.connection, "options of the connection: see pnfsrdma(3)");
  app.add_option("--seconds", options.seconds, "of each row, target and round (1)")
      ->check(CLI::Range(0.01, 3600.0));
  app.add_option("--rounds", options.rounds, "in turn (3)")->check(CLI::Range(1, 1000));
  app.add_option("--size", options.size_mib, "of each file, MiB (256)")->check(CLI::Range(64, 1 << 20));
  app.add_flag("--json", options.json, "a JSON object a line for each row and target, in place of the table");
  std::set<std::string> names;
  for (const Row& row : kRows) names.insert(row.name);
  app.add_option("--row", options.rows, "only rows of this name (again: several)")
      ->check(CLI::IsMember(names))
      ->allow_extra_args(false);
  try {
    app.parse(count, arguments);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  pnfsrdma_client* client = nullptr;
  if (pnfsrdma_connect(options.source.c_str(), options.connection.c_str(), &client) != 0) {
    fmt::print(stderr, "pnfsrdma-bench: {}\n", pnfsrdma_last_error());
    return 1;
  }
  int code = 0;
  try {
    bench(client, options);
  } catch (const std::exception& error) {
    fmt::print(stderr, "pnfsrdma-bench: {}\n", error.what());
    code = 1;
  }
  if (pnfsrdma_disconnect(client) != 0) {
    fmt::print(stderr, "pnfsrdma-bench: {}\n", pnfsrdma_last_error());
    code = 1;
  }
  return code;
}
