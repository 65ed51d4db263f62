// SPDX-License-Identifier: Apache-2.0
// bench-rpma: reads and durable writes by librpma, to compare ours (bench-brick durable, pnfsrdma-bench) with.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <numeric>

#include "tests/bench/percentiles.h"
#include "tests/bench/rpma/client.h"
#include "tests/bench/rpma/server.h"

namespace pnfsrdma::bench {
namespace {

int complain(const Error& error) {
  fmt::print(stderr, "bench-rpma: {}\n", error.to_string());
  return 2;
}

int run(int argc, char** argv) {
  std::string address, dax, method = "gpspm";
  uint64_t operations = 1000;
  CLI::App app{"Reads and durable writes by librpma."};
  app.require_subcommand(1);
  CLI::App* server = app.add_subcommand("server", "serves one client");
  server->add_option("--address", address, "of an RDMA device")->required();
  server->add_option("--dax", dax, "device DAX; its last 2 MiB are overwritten")->required();
  CLI::App* client = app.add_subcommand("client", "reads or writes, and prints microseconds as JSON");
  client->add_option("--address", address, "the server's")->required();
  client->add_option("--method", method)
      ->check(CLI::IsMember({"apm", "gpspm", "flush", "read", "chain"}))
      ->capture_default_str();
  client->add_option("--operations", operations)->capture_default_str();
  CLI11_PARSE(app, argc, argv);

  if (*server) {
    const auto served = serve_rpma(address, dax);
    return served ? 0 : complain(served.error());
  }
  const auto measured = measure_rpma(address, method, operations);
  if (!measured) return complain(measured.error());
  Percentiles microseconds;
  for (const double value : *measured) microseconds.add(value);
  const double sum = std::accumulate(measured->begin(), measured->end(), 0.0);
  const nlohmann::json report{{"method", method},
                              {"operations", operations},
                              {"mean_us", sum / static_cast<double>(measured->size())},
                              {"p10_us", microseconds.at(10)},
                              {"p50_us", microseconds.at(50)},
                              {"p99_us", microseconds.at(99)}};
  fmt::print("{}\n", report.dump(2));
  return 0;
}

}  // namespace
}  // namespace pnfsrdma::bench

int main(int argc, char** argv) {
  return pnfsrdma::bench::run(argc, argv);
}
