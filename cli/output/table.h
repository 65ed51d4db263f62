// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "cli/output/terminal.h"

namespace pnfsrdma::cli {

struct Cell {
  // NOLINTNEXTLINE(google-explicit-constructor): a row is a list of texts
  Cell(std::string shown, Style with = Style::kPlain) : text(std::move(shown)), style(with) {}
  // NOLINTNEXTLINE(google-explicit-constructor)
  Cell(const char* shown) : text(shown) {}

  std::string text;
  Style style = Style::kPlain;
};

struct Column {
  std::string title;
  enum class Align { kLeft, kRight } align = Align::kLeft;
  // Columns that may be cut where the terminal is narrow, the widest first.
  bool may_shrink = false;
};

// Rows under titles, aligned, no wider than the terminal. Cells pass through printable(). A value; build,
// fill, print.
class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // As many cells as columns.
  void add(std::vector<Cell> row);
  bool empty() const { return rows_.empty(); }
  // With a line break behind each line. `titles` off: rows only.
  std::string to_string(const Terminal& terminal, bool titles = true) const;

 private:
  std::vector<size_t> widths(const Terminal& terminal, bool titles) const;

  std::vector<Column> columns_;
  std::vector<std::vector<Cell>> rows_;
};

}  // namespace pnfsrdma::cli
