// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tests/bench/server/fill.h"
#include "tests/bench/server/measurement.h"
#include "tests/bench/server/settings.h"

namespace pnfsrdma::bench {

// The rounds of one row with so many clients on one server.
struct Cell {
  std::vector<Slice> rounds;

  bool empty() const { return rounds.empty(); }
  // The median over the rounds.
  double rate() const;
  double p50_us() const;
  double p99_us() const;
  double server_us() const;
  double generator() const;
};

// One line: a cell for each server. The first server is compared with the second, round by round.
struct Line {
  std::string row;
  uint32_t clients = 0;
  bool open = false;
  std::vector<Cell> cells;
};

// The tables as they grow, and all figures as JSON.
class Report {
 public:
  Report(const ServerSettings& settings, double aim) : settings_(settings), aim_(aim) {}

  void title(const std::string& text) const;
  void add(Line line);
  void add(const std::string& target, const Filling& filling);
  void skipped(const std::string& row, const std::string& target, const std::string& why);
  // What more clients cost: of each row the most clients beside 10.
  void print_scaling() const;

  // Of closed loops: the highest rate of a row on a server, whatever the number of clients; 0: not measured.
  double best_rate(const std::string& row, size_t target) const;
  nlohmann::json to_json() const;

 private:
  void print(const Line& line) const;
  const Line* find(const std::string& row, uint32_t clients, bool open) const;

  const ServerSettings& settings_;
  const double aim_;
  std::vector<Line> lines_;
  nlohmann::json fillings_ = nlohmann::json::object();
  nlohmann::json skipped_ = nlohmann::json::array();
};

}  // namespace pnfsrdma::bench
