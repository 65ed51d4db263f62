// SPDX-License-Identifier: Apache-2.0
#include "cli/output/table.h"

#include <algorithm>
#include <numeric>

#include "cli/output/text.h"
#include "shared/base/check.h"

namespace pnfsrdma::cli {
namespace {

constexpr std::string_view kGap = "  ";
constexpr size_t kLeastWidth = 6;

// One line: cells cut and filled to their widths, nothing behind the last.
std::string line_of(const std::vector<Cell>& row, const std::vector<Column>& columns,
                    const std::vector<size_t>& widths, const Terminal& terminal) {
  std::string line;
  for (size_t i = 0; i < row.size(); ++i) {
    const std::string text = shortened(row[i].text, widths[i]);
    const std::string filling(widths[i] - columns_of(text), ' ');
    const bool right = columns[i].align == Column::Align::kRight;
    const bool last = i + 1 == row.size();
    if (i > 0) line += kGap;
    if (right) line += filling;
    line += terminal.styled(text, row[i].style);
    if (!right && !last) line += filling;
  }
  while (line.ends_with(' ')) line.pop_back();
  return line + '\n';
}

}  // namespace

void Table::add(std::vector<Cell> row) {
  CHECK(row.size() == columns_.size());
  for (Cell& cell : row) cell.text = printable(cell.text);
  rows_.push_back(std::move(row));
}

std::vector<size_t> Table::widths(const Terminal& terminal, bool titles) const {
  std::vector<size_t> widths;
  for (const Column& column : columns_) widths.push_back(titles ? columns_of(column.title) : 0);
  for (const auto& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], columns_of(row[i].text));
  }
  if (terminal.columns == 0) return widths;
  const size_t gaps = kGap.size() * (columns_.size() - 1);
  // The widest that may be cut gives a column at a time; when none may any more, all do.
  for (const bool all : {false, true}) {
    for (;;) {
      const size_t total = std::accumulate(widths.begin(), widths.end(), gaps);
      if (total <= terminal.columns) return widths;
      size_t widest = widths.size();
      for (size_t i = 0; i < widths.size(); ++i) {
        if (!all && !columns_[i].may_shrink) continue;
        if (widths[i] > (all ? 1 : kLeastWidth) && (widest == widths.size() || widths[i] > widths[widest])) {
          widest = i;
        }
      }
      if (widest == widths.size()) break;
      --widths[widest];
    }
  }
  return widths;
}

std::string Table::to_string(const Terminal& terminal, bool titles) const {
  const std::vector<size_t> all = widths(terminal, titles);
  std::string text;
  if (titles) {
    std::vector<Cell> row;
    for (const Column& column : columns_) row.emplace_back(column.title, Style::kBold);
    text += line_of(row, columns_, all, terminal);
  }
  for (const auto& row : rows_) text += line_of(row, columns_, all, terminal);
  return text;
}

}  // namespace pnfsrdma::cli
