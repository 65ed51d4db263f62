// SPDX-License-Identifier: Apache-2.0
// bench-transport: the iwarp transport beside plain TCP on loopback, in one run, as a table with ratios.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "tests/bench/transport/measurement.h"
#include "tests/bench/transport/memory.h"
#include "tests/bench/transport/verbs_table.h"

namespace pnfsrdma::bench {
namespace {

using Operation = TransportBench::Operation;

constexpr size_t kBandwidthSizes[] = {4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20};
constexpr size_t kLatencySizes[] = {8, 64, 512, 4096};

// Best of three interleaved rounds per contender, so that a noisy moment of the machine hits none of them
// alone.
constexpr int kRounds = 3;

struct Row {
  size_t size = 0;
  double tcp = 0, read = 0, write = 0, read_crc = 0, write_crc = 0;
};

Row bandwidth_row(const Settings& settings, size_t size) {
  Row row{.size = size};
  for (int round = 0; round < kRounds; ++round) {
    row.tcp = std::max(row.tcp, TcpBaseline::stream(settings, size));
    row.read = std::max(row.read, TransportBench::bandwidth(settings, false, Operation::kRead, size));
    row.write = std::max(row.write, TransportBench::bandwidth(settings, false, Operation::kWrite, size));
    row.read_crc = std::max(row.read_crc, TransportBench::bandwidth(settings, true, Operation::kRead, size));
    row.write_crc =
        std::max(row.write_crc, TransportBench::bandwidth(settings, true, Operation::kWrite, size));
  }
  return row;
}

Row latency_row(const Settings& settings, size_t size) {
  Row row{size, 1e9, 1e9, 1e9, 1e9, 1e9};
  for (int round = 0; round < kRounds; ++round) {
    row.tcp = std::min(row.tcp, TcpBaseline::ping_pong(settings, size));
    row.read = std::min(row.read, TransportBench::latency(settings, false, Operation::kRead, size));
    row.write = std::min(row.write, TransportBench::latency(settings, false, Operation::kWrite, size));
    row.read_crc = std::min(row.read_crc, TransportBench::latency(settings, true, Operation::kRead, size));
    row.write_crc = std::min(row.write_crc, TransportBench::latency(settings, true, Operation::kWrite, size));
  }
  return row;
}

void print_row(const Row& row) {
  auto cell = [&](double value) { return fmt::format("{:8.2f} {:5.2f}x", value, value / row.tcp); };
  fmt::print("{:>9} {:8.2f}  {}  {}  {}  {}\n", row.size, row.tcp, cell(row.read), cell(row.write),
             cell(row.read_crc), cell(row.write_crc));
  std::fflush(stdout);
}

void print_head(const char* title, const char* unit, const char* baseline) {
  fmt::print("\n{} ({}; x: ratio to plain TCP in the same run)\n", title, unit);
  fmt::print("{:>9} {:>8}  {:>15}  {:>15}  {:>15}  {:>15}\n", "bytes", baseline, "READ", "WRITE", "READ crc",
             "WRITE crc");
}

nlohmann::json to_json(const Row& row) {
  return {{"bytes", row.size},  {"tcp", row.tcp},           {"read", row.read},
          {"write", row.write}, {"read_crc", row.read_crc}, {"write_crc", row.write_crc}};
}

int run(int argc, char** argv) {
  Settings settings;
  bool json = false;
  VerbsTable table;
  CLI::App app{"Bandwidth and latency of one-sided READ and WRITE over iwarp on loopback, beside plain TCP."};
  app.add_flag("--json", json, "print one JSON object instead of tables");
  app.add_option("--seconds", settings.seconds, "time per number")->capture_default_str();
  app.add_option("--depth", settings.depth, "operations in flight for bandwidth")
      ->check(CLI::Range(1, 128))
      ->capture_default_str();
  app.add_option("--socket-buffer", settings.socket_buffer_bytes, "SO_SNDBUF and SO_RCVBUF, bytes")
      ->capture_default_str();
  std::string pin = "one";
  app.add_option(
         "--pin", pin,
         "both ends on one CPU, on two, or wherever the kernel puts them (none; what verbs does unasked)")
      ->check(CLI::IsMember({"one", "two", "none"}))
      ->capture_default_str();
  std::string transport = "iwarp";
  app.add_option("--transport", transport, "iwarp beside plain TCP, or verbs on the first RDMA device")
      ->check(CLI::IsMember({"iwarp", "verbs"}))
      ->capture_default_str();
  app.add_option("--measure", table.wanted, "verbs: only these (again: several)")
      ->check(CLI::IsMember(VerbsTable::quantities()));
  app.add_option("--size", table.sizes, "verbs: bytes of an operation (again: several)")
      ->check(CLI::Range(size_t{1}, Memory::kSmall / 2));
  app.add_option("--rounds", table.rounds, "verbs: the best of so many")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  settings.verbs = transport == "verbs";
  if (settings.verbs && app.count("--pin") == 0) pin = "none";
  if (pin != "none") settings.initiator_cpu = settings.target_cpu = allowed_cpu(0);
  if (pin == "two") settings.target_cpu = allowed_cpu(1);
  if (settings.verbs) {
    table.json = json;
    return table.print(settings);
  }

  Memory::source();
  Memory::destination();
  nlohmann::json report{{"pin", pin}, {"socket_buffer", settings.socket_buffer_bytes}};
  if (!json)
    fmt::print("iwarp beside plain TCP over loopback, socket buffers {} bytes, CPUs: {}\n",
               settings.socket_buffer_bytes, pin);
  if (!json) print_head("bandwidth", "GB/s, a WRITE counts when it is confirmed", "stream");
  for (size_t size : kBandwidthSizes) {
    Row row = bandwidth_row(settings, size);
    report["bandwidth"].push_back(to_json(row));
    if (!json) print_row(row);
  }
  if (!json) print_head("latency", "microseconds per operation at queue depth 1", "pingpong");
  for (size_t size : kLatencySizes) {
    Row row = latency_row(settings, size);
    report["latency"].push_back(to_json(row));
    if (!json) print_row(row);
  }
  if (json) fmt::print("{}\n", report.dump(2));
  return 0;
}

}  // namespace
}  // namespace pnfsrdma::bench

int main(int argc, char** argv) {
  return pnfsrdma::bench::run(argc, argv);
}
