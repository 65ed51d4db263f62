// SPDX-License-Identifier: Apache-2.0
// bench-server: thousands of NFSv4.1 clients in one process and one thread, against one server or several in
// turn.
#include <fmt/format.h>
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "shared/base/clock.h"
#include "shared/base/event_loop.h"
#include "shared/base/log.h"
#include "tests/bench/server/fill.h"
#include "tests/bench/server/fleet.h"
#include "tests/bench/server/measurement.h"
#include "tests/bench/server/report.h"
#include "tests/bench/server/rows.h"
#include "tests/bench/server/settings.h"
#include "tests/bench/server/tree.h"

namespace pnfsrdma::bench {
namespace {

constexpr int kExitFailure = 1;
constexpr int kExitUsage = 2;
constexpr uint16_t kNfsPort = 2049;

// All servers in turn: row by row, round by round.
class Bench {
 public:
  Bench(const ServerSettings& settings, Report& report)
      : settings_(settings), report_(report), loop_(clock_), trees_(settings.targets.size()) {}

  Result<> run() {
    for (size_t i = 0; i < trees_.size(); ++i) {
      TRY(make_tree(loop_, settings_.targets[i], settings_, trees_[i]));
    }
    if (settings_.fill > 0) return fill_all();
    const Result<> measured = measure();
    if (!settings_.keep) {
      for (size_t i = 0; i < trees_.size(); ++i) {
        const Result<> removed = remove_tree(loop_, settings_.targets[i], settings_, trees_[i]);
        if (!removed && measured) return removed;
      }
    }
    return measured;
  }

 private:
  using Fleets = std::vector<std::unique_ptr<Fleet>>;

  // By the smallest number of clients that was asked for.
  Result<> fill_all() {
    for (size_t i = 0; i < trees_.size(); ++i) {
      Fleet fleet(loop_, settings_.targets[i], settings_, trees_[i]);
      TRY(fleet.connect(std::ranges::min(settings_.clients), settings_.slots));
      TRY_ASSIGN(const Filling filling, fill(fleet, trees_[i], settings_));
      report_.add(settings_.targets[i].name, filling);
      if (settings_.hold == "nothing") TRY(fleet.leave());
    }
    return {};
  }

  Result<> measure() {
    report_.title("closed loop: each client waits for its answer");
    for (const uint32_t clients : settings_.clients) TRY(with_clients(clients, false));
    if (settings_.open == "off") return {};
    report_.title(
        settings_.open == "half"
            ? "open loop, half of the row's highest rate above, times from when an operation was due"
            : fmt::format("open loop, {} operations a second, times from when one was due", settings_.open));
    for (const uint32_t clients : settings_.open_clients) TRY(with_clients(clients, true));
    return {};
  }

  Result<> with_clients(uint32_t clients, bool open) {
    Fleets fleets;
    for (size_t i = 0; i < trees_.size(); ++i) {
      fleets.push_back(std::make_unique<Fleet>(loop_, settings_.targets[i], settings_, trees_[i]));
      TRY(fleets[i]->connect(clients, open ? settings_.slots : 1));
      // The folder first: its slots' files are made side by side.
      TRY(fleets[i]->play_once_each(make_client_folder()));
      TRY(fleets[i]->play(make_client_folder()));
      TRY(renew(fleets));
    }
    for (const Row& row : all_rows()) {
      const std::string name(row.name);
      if (settings_.rows.empty() || std::ranges::find(settings_.rows, name) != settings_.rows.end()) {
        TRY(measure_row(fleets, row, clients, open));
      }
    }
    for (auto& fleet : fleets) TRY(fleet->leave());
    return {};
  }

  // Leases run while another server's turn is.
  Result<> renew(Fleets& fleets) {
    for (auto& fleet : fleets) TRY(fleet->renew());
    return {};
  }

  bool is_measured(const Row& row, size_t target, bool open) {
    const std::string name(row.name);
    if (row.layouts && !trees_[target].layouts) {
      report_.skipped(name, settings_.targets[target].name, "it has no layouts of our type");
      return false;
    }
    return !open || offered(row, target) > 0;
  }

  double offered(const Row& row, size_t target) const {
    return settings_.open == "half" ? report_.best_rate(std::string(row.name), target) / 2
                                    : std::stod(settings_.open);
  }

  Result<> measure_row(Fleets& fleets, const Row& row, uint32_t clients, bool open) {
    Line line{std::string(row.name), clients, open, std::vector<Cell>(fleets.size())};
    std::vector<size_t> measured;
    for (size_t i = 0; i < fleets.size(); ++i) {
      if (is_measured(row, i, open)) measured.push_back(i);
    }
    if (measured.empty()) return {};
    for (const size_t i : measured) {
      TRY(renew(fleets));
      for (const auto& worker : fleets[i]->workers()) worker->checked = false;
      TRY(fleets[i]->play(row.prepare));
    }
    for (uint32_t round = 0; round < settings_.rounds; ++round) {
      for (const size_t i : measured) {
        TRY(renew(fleets));
        TRY_ASSIGN(const Slice slice, measure_slice(*fleets[i], row, open, i));
        line.cells[i].rounds.push_back(slice);
      }
    }
    for (const size_t i : measured) {
      TRY(renew(fleets));
      TRY(fleets[i]->play(row.finish));
    }
    report_.add(std::move(line));
    return {};
  }

  Result<Slice> measure_slice(Fleet& fleet, const Row& row, bool open, size_t target) {
    Result<Slice> slice = open ? measure_open(loop_, fleet, row, offered(row, target), settings_.seconds)
                               : measure_closed(loop_, fleet, row, settings_.seconds);
    if (!slice) return std::unexpected(slice.error().in(settings_.targets[target].name));
    return slice;
  }

  const ServerSettings& settings_;
  Report& report_;
  SystemClock clock_;
  EventLoop loop_;
  std::vector<Tree> trees_;
};

// "NAME=HOST:PORT", or an address alone, which is then its own name.
Result<Target> parse_target(const std::string& text) {
  const size_t equals = text.find('=');
  const std::string address = equals == std::string::npos ? text : text.substr(equals + 1);
  TRY_ASSIGN(const rpc::SocketAddress parsed, rpc::SocketAddress::parse(address, kNfsPort));
  return Target{equals == std::string::npos ? address : text.substr(0, equals), parsed, {}};
}

// "NAME=PID" of a server above.
Result<> add_process(const std::string& text, std::vector<Target>& targets) {
  const size_t equals = std::min(text.find('='), text.size());
  const auto target = std::ranges::find(targets, text.substr(0, equals), &Target::name);
  const int process = std::atoi(text.substr(std::min(equals + 1, text.size())).c_str());
  if (target == targets.end() || process <= 0) return fail(EINVAL, "--process " + text + ": not NAME=PID");
  target->processes.push_back(process);
  return {};
}

// A socket for each client of each server.
void raise_file_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

std::vector<std::string> row_names() {
  std::vector<std::string> names;
  for (const Row& row : all_rows()) names.emplace_back(row.name);
  return names;
}

std::string row_list() {
  std::string text = "Rows, one operation each (every COMPOUND begins with SEQUENCE):\n";
  for (const Row& row : all_rows()) text += fmt::format("  {:<14}{}\n", row.name, row.what);
  return text + "Exit code: 0, 1 when a server failed or answered an error, 2 for bad arguments.";
}

void add_options(CLI::App& app, ServerSettings& settings, std::vector<std::string>& servers, double& aim) {
  app.add_option("server", servers,
                 "[NAME=]HOST[:PORT] of an NFSv4.1 server; with two the first is compared with the second")
      ->required();
  app.add_option("--path", settings.path, "where the generator makes its folder, on each server")
      ->capture_default_str();
  app.add_option("--rows", settings.rows, "only these")->delimiter(',')->check(CLI::IsMember(row_names()));
  app.add_option("--clients", settings.clients, "numbers of clients, closed loop")
      ->delimiter(',')
      ->check(CLI::Range(1, 4000))
      ->capture_default_str();
  app.add_option("--open", settings.open,
                 "open loop too: operations a second, or \"half\" of the highest rate of the closed loops")
      ->check(CLI::IsMember({"off", "half"}) | CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--open-clients", settings.open_clients, "numbers of clients, open loop")
      ->delimiter(',')
      ->check(CLI::Range(1, 4000))
      ->capture_default_str();
  app.add_option("--slots", settings.slots, "operations a client may have under way, open loop")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  app.add_option("--seconds", settings.seconds, "of each row, server and round; a fifth of it is warm-up")
      ->check(CLI::Range(0.05, 10.0))
      ->capture_default_str();
  app.add_option("--rounds", settings.rounds, "of each row, the servers in turn")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--minor-version", settings.minor_version)->check(CLI::Range(1, 2))->capture_default_str();
  app.add_option("--uid", settings.uid, "of the calls (AUTH_SYS)")->capture_default_str();
  app.add_option("--gid", settings.gid)->capture_default_str();
  app.add_option("--process", settings.processes,
                 "NAME=PID of a server that runs here (again: several): its processor time for an operation")
      ->delimiter(',');
  app.add_option("--aim", aim, "marks rows whose rate is below so many times the second server's");
  app.add_option("--fill", settings.fill,
                 "make so many files instead, and leave them: files a second, tenth by tenth");
  app.add_option("--bytes", settings.fill_bytes, "with --fill: so many bytes are written to each file")
      ->check(CLI::Range(uint32_t{0}, kFileBytes))
      ->capture_default_str();
  app.add_option("--folders", settings.folders, "into so many folders")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  app.add_option(
         "--hold", settings.hold,
         "with --fill: what is held of each file until the clients' lease has ended: nothing, opens, layouts")
      ->check(CLI::IsMember({"nothing", "opens", "layouts"}))
      ->capture_default_str();
  app.add_flag("--keep", settings.keep, "leave the folder on the server");
  app.add_flag("--json", settings.json, "one JSON object instead of tables");
  app.add_option("--json-file", settings.json_file, "that object into a file, the tables as well");
  app.footer(row_list());
}

int refuse(const Error& error) {
  fmt::print(stderr, "bench-server: {}\n", error.to_string());
  return kExitUsage;
}

int run(int argc, char** argv) {
  ServerSettings settings;
  std::vector<std::string> servers;
  double aim = 0;
  CLI::App app{
      "Load on NFSv4.1 servers: many clients, one thread, the real protocol over TCP. Operations a second "
      "and latencies."};
  add_options(app, settings, servers, aim);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kExitUsage;
  }
  for (const std::string& server : servers) {
    Result<Target> target = parse_target(server);
    if (!target) return refuse(target.error());
    settings.targets.push_back(std::move(*target));
  }
  for (const std::string& process : settings.processes) {
    if (const Result<> added = add_process(process, settings.targets); !added) return refuse(added.error());
  }
  raise_file_limit();
  Report report(settings, aim);
  const Result<> done = Bench(settings, report).run();
  if (done) report.print_scaling();
  if (settings.json) fmt::print("{}\n", report.to_json().dump(1));
  if (!settings.json_file.empty()) std::ofstream(settings.json_file) << report.to_json().dump(1) << '\n';
  if (!done) {
    fmt::print(stderr, "bench-server: {}\n", done.error().to_string());
    return kExitFailure;
  }
  return 0;
}

}  // namespace
}  // namespace pnfsrdma::bench

int main(int argc, char** argv) {
  return pnfsrdma::bench::run(argc, argv);
}
