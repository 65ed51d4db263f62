// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "cli/output/failure.h"
#include "cli/output/table.h"
#include "cli/output/terminal.h"

namespace pnfsrdma::cli {

// Where a command prints: results on stdout, what went wrong on stderr; for people, or with --json for
// programs. Made by main(); not thread-safe.
class Output {
 public:
  Output(std::FILE* results, std::FILE* complaints);

  // --json was given: results are one JSON value (a stream of them where a command says so).
  bool json = false;

  const Terminal& terminal() const { return terminal_; }
  const Terminal& complaints_terminal() const { return complaints_terminal_; }

  void text(std::string_view text);
  void line(std::string_view text = {});
  void table(const Table& table, bool titles = true) { text(table.to_string(terminal_, titles)); }
  void value(const nlohmann::json& value);
  // "pnfsrdma: title", then detail and fix; with --json an object. Returns the code to end with.
  ExitCode complain(const Failure& failure);
  void note(std::string_view text);  // on stderr, for people only

 private:
  std::FILE* const results_;
  std::FILE* const complaints_;
  const Terminal terminal_;
  const Terminal complaints_terminal_;
};

}  // namespace pnfsrdma::cli
