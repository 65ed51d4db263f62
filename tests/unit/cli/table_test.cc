// SPDX-License-Identifier: Apache-2.0
#include "cli/output/table.h"

#include <gtest/gtest.h>

#include <clocale>
#include <sstream>

#include "cli/output/text.h"

namespace pnfsrdma::cli {
namespace {

using Align = Column::Align;

Table bricks() {
  Table table({{"BRICK", Align::kLeft, true}, {"STATE"}, {"FREE", Align::kRight}});
  table.add({"unix:/run/pnfsrdma/brick.sock", {"ready", Style::kGood}, "1.5 GiB"});
  table.add({"b", "away", "0 B"});
  return table;
}

TEST(Table, ColumnsAreAlignedAndNothingTrails) {
  EXPECT_EQ(bricks().to_string({}),
            "BRICK                          STATE     FREE\n"
            "unix:/run/pnfsrdma/brick.sock  ready  1.5 GiB\n"
            "b                              away       0 B\n");
}

TEST(Table, NoLineIsWiderThanTheTerminal) {
  std::setlocale(LC_CTYPE, "C.UTF-8");
  for (size_t columns = 8; columns < 60; ++columns) {
    std::istringstream lines(bricks().to_string({.columns = columns}));
    for (std::string line; std::getline(lines, line);) {
      EXPECT_LE(columns_of(line), columns) << line;
    }
  }
}

TEST(Table, ColumnsThatMayShrinkGiveWayFirst) {
  const std::string text = bricks().to_string({.columns = 30});
  EXPECT_NE(text.find("1.5 GiB"), std::string::npos) << text;
  EXPECT_NE(text.find("unix:/run/pnf…"), std::string::npos) << text;
}

TEST(Table, ColoursAreOnlyForTerminalsThatWantThem) {
  EXPECT_EQ(bricks().to_string({}).find('\033'), std::string::npos);
  EXPECT_NE(bricks().to_string({.colours = true}).find("\033[32mready\033[0m"), std::string::npos);
}

TEST(Table, NamesCannotSteerTheTerminal) {
  Table table({{"NAME"}});
  table.add({"evil\033]0;title\007\nSECOND"});
  EXPECT_EQ(table.to_string({}), "NAME\nevil?]0;title??SECOND\n");
}

}  // namespace
}  // namespace pnfsrdma::cli
