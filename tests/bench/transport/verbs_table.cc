// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/transport/verbs_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "shared/rdma/verbs/transport.h"

namespace pnfsrdma::bench {
namespace {

using Operation = TransportBench::Operation;
using Waiting = TransportBench::Waiting;

struct Quantity {
  const char* key;  // its unit last
  double (*measure)(const Settings&, size_t);
  bool more_is_better = false;
};

constexpr Quantity kQuantities[] = {
    {"read_mb_s",
     [](const Settings& settings, size_t size) {
       return TransportBench::bandwidth(settings, false, Operation::kRead, size) * 1000;
     },
     true},
    {"write_mb_s",
     [](const Settings& settings, size_t size) {
       return TransportBench::bandwidth(settings, false, Operation::kWrite, size) * 1000;
     },
     true},
    {"read_us", [](const Settings& settings,
                   size_t size) { return TransportBench::latency(settings, false, Operation::kRead, size); }},
    {"read_polled_us",
     [](const Settings& settings, size_t size) {
       return TransportBench::latency(settings, false, Operation::kRead, size, Waiting::kPolling);
     }},
    {"write_us",
     [](const Settings& settings, size_t size) {
       return TransportBench::latency(settings, false, Operation::kWrite, size);
     }},
    {"write_one_way_us", TransportBench::ping_pong},
};

double best_of(const Quantity& quantity, const Settings& settings, size_t size, int rounds) {
  double best = quantity.measure(settings, size);
  for (int round = 1; round < rounds; ++round) {
    const double value = quantity.measure(settings, size);
    best = quantity.more_is_better ? std::max(best, value) : std::min(best, value);
  }
  return best;
}

}  // namespace

const std::vector<std::string>& VerbsTable::quantities() {
  static const std::vector<std::string> keys = [] {
    std::vector<std::string> all;
    for (const Quantity& quantity : kQuantities) all.emplace_back(quantity.key);
    return all;
  }();
  return keys;
}

int VerbsTable::print(const Settings& settings) const {
  if (auto devices = rdma::verbs::make_transports(); !devices || rdma::verbs::local_addresses().empty()) {
    fmt::print(stderr, "bench-transport: {}\n",
               devices ? "no RDMA device has an address" : devices.error().to_string());
    return 77;
  }
  std::vector<Quantity> columns;
  for (const Quantity& quantity : kQuantities) {
    if (std::ranges::find(wanted, quantity.key) != wanted.end()) columns.push_back(quantity);
  }
  nlohmann::json report{{"transport", "verbs"}};
  if (!json) {
    fmt::print("verbs\n{:>9}", "bytes");
    for (const Quantity& quantity : columns) fmt::print(" {}", quantity.key);
    fmt::print("\n");
  }
  for (const size_t size : sizes) {
    nlohmann::json row{{"bytes", size}};
    if (!json) fmt::print("{:>9}", size);
    for (const Quantity& quantity : columns) {
      const double value = best_of(quantity, settings, size, rounds);
      row[quantity.key] = value;
      if (!json) fmt::print(" {:>{}.1f}", value, std::string_view(quantity.key).size());
      std::fflush(stdout);
    }
    report["rows"].push_back(std::move(row));
    if (!json) fmt::print("\n");
  }
  if (json) fmt::print("{}\n", report.dump(2));
  return 0;
}

}  // namespace pnfsrdma::bench
