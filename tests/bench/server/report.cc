// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/server/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <set>

#include "tests/bench/percentiles.h"

namespace pnfsrdma::bench {
namespace {

// The aims that hold for any server.
constexpr uint32_t kFewClients = 10;
constexpr double kRateKept = 0.9;  // of the rate with few clients, with many
constexpr double kP99Grown = 3;    // times the p99 with few clients, with many, at the same offered rate

double median_of(const std::vector<Slice>& rounds, double Slice::* quantity) {
  Percentiles values;
  for (const Slice& slice : rounds) values.add(slice.*quantity);
  return values.at(50);
}

// The rounds' own ratios of the first server to the second.
std::vector<double> ratios(const Line& line, double Slice::* quantity) {
  std::vector<double> found;
  if (line.cells.size() < 2) return found;
  const auto& ours = line.cells[0].rounds;
  const auto& theirs = line.cells[1].rounds;
  for (size_t i = 0; i < std::min(ours.size(), theirs.size()); ++i) {
    if (theirs[i].*quantity > 0) found.push_back(ours[i].*quantity / (theirs[i].*quantity));
  }
  std::ranges::sort(found);
  return found;
}

std::string ratio_text(const std::vector<double>& sorted) {
  if (sorted.empty()) return {};
  return fmt::format("{:.2f} ({:.2f}-{:.2f})", sorted[(sorted.size() - 1) / 2], sorted.front(),
                     sorted.back());
}

std::string median_text(const std::vector<double>& sorted) {
  return sorted.empty() ? std::string() : fmt::format("{:.2f}", sorted[(sorted.size() - 1) / 2]);
}

std::string duration(double microseconds) {
  return microseconds < 10'000 ? fmt::format("{:.0f} us", microseconds)
                               : fmt::format("{:.1f} ms", microseconds / 1e3);
}

nlohmann::json to_json(const Slice& slice) {
  return {{"operations", slice.operations}, {"done", slice.done},
          {"seconds", slice.seconds},       {"rate", slice.rate},
          {"p50_us", slice.p50_us},         {"p99_us", slice.p99_us},
          {"max_us", slice.max_us},         {"offered", slice.offered},
          {"unfinished", slice.unfinished}, {"delays", slice.delays},
          {"server_us", slice.server_us},   {"generator", slice.generator}};
}

}  // namespace

double Cell::rate() const {
  return median_of(rounds, &Slice::rate);
}
double Cell::p50_us() const {
  return median_of(rounds, &Slice::p50_us);
}
double Cell::p99_us() const {
  return median_of(rounds, &Slice::p99_us);
}
double Cell::server_us() const {
  return median_of(rounds, &Slice::server_us);
}
double Cell::generator() const {
  return median_of(rounds, &Slice::generator);
}

void Report::title(const std::string& text) const {
  if (settings_.json) return;
  fmt::print("\n{}\n{:<13}{:>8}", text, "row", "clients");
  for (const Target& target : settings_.targets) {
    fmt::print("  {:>11}{:>9}{:>9}{:>8}{:>5}", target.name + ", /s", "p50", "p99", "cpu us", "gen");
  }
  if (settings_.targets.size() > 1)
    fmt::print("  {:>18}{:>20}{:>10}", "rate : rate", "p99 : p99", "cpu : cpu");
  fmt::print("\n");
  std::fflush(stdout);
}

void Report::add(Line line) {
  print(line);
  lines_.push_back(std::move(line));
}

void Report::add(const std::string& target, const Filling& filling) {
  fillings_[target] = {{"files", filling.files}, {"rates", filling.rates}};
  if (settings_.json) return;
  fmt::print("{}: {} files; files a second, tenth by tenth:", target, filling.files);
  for (const double rate : filling.rates) fmt::print(" {:.0f}", rate);
  fmt::print("\n");
}

void Report::print(const Line& line) const {
  if (settings_.json) return;
  fmt::print("{:<13}{:>8}", line.row, line.clients);
  uint64_t unfinished = 0;
  for (const Cell& cell : line.cells) {
    if (cell.empty()) {
      fmt::print("  {:>11}{:>9}{:>9}{:>8}{:>5}", "-", "-", "-", "-", "-");
      continue;
    }
    fmt::print("  {:>11.0f}{:>9}{:>9}{:>8.1f}{:>5.2f}", cell.rate(), duration(cell.p50_us()),
               duration(cell.p99_us()), cell.server_us(), cell.generator());
    for (const Slice& slice : cell.rounds) unfinished += slice.unfinished;
  }
  if (const auto rates = ratios(line, &Slice::rate); !rates.empty()) {
    fmt::print("  {:>18}{:>20}{:>10}", ratio_text(rates), ratio_text(ratios(line, &Slice::p99_us)),
               median_text(ratios(line, &Slice::server_us)));
    if (!line.open && aim_ > 0 && rates[(rates.size() - 1) / 2] < aim_) fmt::print("  below {}", aim_);
  }
  if (unfinished > 0) fmt::print("  {} not done in time", unfinished);
  fmt::print("\n");
  std::fflush(stdout);
}

void Report::skipped(const std::string& row, const std::string& target, const std::string& why) {
  const nlohmann::json entry = {{"row", row}, {"server", target}, {"why", why}};
  if (std::ranges::find(skipped_, entry) != skipped_.end()) return;
  skipped_.push_back(entry);
  if (!settings_.json) fmt::print("{:<13}skipped for {}: {}\n", row, target, why);
}

const Line* Report::find(const std::string& row, uint32_t clients, bool open) const {
  const auto found = std::ranges::find_if(lines_, [&](const Line& line) {
    return line.row == row && line.clients == clients && line.open == open;
  });
  return found == lines_.end() ? nullptr : &*found;
}

double Report::best_rate(const std::string& row, size_t target) const {
  double best = 0;
  for (const Line& line : lines_) {
    if (line.row == row && !line.open && !line.cells[target].empty()) {
      best = std::max(best, line.cells[target].rate());
    }
  }
  return best;
}

void Report::print_scaling() const {
  uint32_t many = 0;
  for (const Line& line : lines_) many = std::max(many, line.clients);
  const auto is_few = [](const Line& line) { return line.clients == kFewClients; };
  if (settings_.json || many <= kFewClients || std::ranges::none_of(lines_, is_few)) return;
  fmt::print(
      "\n{} clients : {} clients (aims: rate of a closed loop >= {}, p99 at the same offered rate <= {})\n",
      many, kFewClients, kRateKept, kP99Grown);
  std::vector<std::string> rows;
  for (const Line& line : lines_) {
    if (std::ranges::find(rows, line.row) == rows.end()) rows.push_back(line.row);
  }
  for (const std::string& row : rows) {
    fmt::print("{:<13}", row);
    for (size_t target = 0; target < settings_.targets.size(); ++target) {
      const auto ratio = [&](bool open, double (Cell::*quantity)() const) {
        const Line* few = find(row, kFewClients, open);
        const Line* lot = find(row, many, open);
        if (few == nullptr || lot == nullptr) return 0.0;
        const double before = (few->cells[target].*quantity)();
        return before > 0 ? (lot->cells[target].*quantity)() / before : 0.0;
      };
      const double rate = ratio(false, &Cell::rate);
      const double p99 = ratio(true, &Cell::p99_us);
      fmt::print("  {}:", settings_.targets[target].name);
      if (rate > 0) fmt::print(" rate {:.2f}{}", rate, rate < kRateKept ? " missed" : "");
      if (p99 > 0) fmt::print(" p99 {:.2f}{}", p99, p99 > kP99Grown ? " missed" : "");
    }
    fmt::print("\n");
  }
}

nlohmann::json Report::to_json() const {
  nlohmann::json lines = nlohmann::json::array();
  for (const Line& line : lines_) {
    nlohmann::json entry = {
        {"row", line.row}, {"clients", line.clients}, {"loop", line.open ? "open" : "closed"}};
    for (size_t target = 0; target < line.cells.size(); ++target) {
      const Cell& cell = line.cells[target];
      if (cell.empty()) continue;
      nlohmann::json rounds = nlohmann::json::array();
      for (const Slice& slice : cell.rounds) rounds.push_back(bench::to_json(slice));
      entry["servers"][settings_.targets[target].name] = {{"rate", cell.rate()},
                                                          {"p50_us", cell.p50_us()},
                                                          {"p99_us", cell.p99_us()},
                                                          {"server_us", cell.server_us()},
                                                          {"rounds", rounds}};
    }
    entry["rate_ratios"] = ratios(line, &Slice::rate);
    entry["server_us_ratios"] = ratios(line, &Slice::server_us);
    entry["p99_ratios"] = ratios(line, &Slice::p99_us);
    lines.push_back(std::move(entry));
  }
  return {{"seconds", settings_.seconds},
          {"rounds", settings_.rounds},
          {"lines", lines},
          {"skipped", skipped_},
          {"filled", fillings_}};
}

}  // namespace pnfsrdma::bench
