// SPDX-License-Identifier: Apache-2.0
#include "server/mds/grants/layout_table.h"

#include <gtest/gtest.h>

#include <vector>

namespace pnfsrdma::mds {
namespace {

HeldGrant grant_of(uint64_t number) {
  return {.grant = number, .file = {0, 4096}, .logical = number * 4096};
}

TEST(LayoutTable, TheFilesWithDyingGrantsAreKnown) {
  LayoutTable table;
  EXPECT_TRUE(table.files_with_dying().empty());
  table.begin_death(7, 1, {grant_of(1), grant_of(2)});
  table.begin_death(7, 2, {grant_of(3)});
  table.begin_death(8, 1, {});
  EXPECT_EQ(table.files_with_dying(), std::vector<uint64_t>{7});
  std::vector<std::pair<uint64_t, uint64_t>> dying;
  table.for_each_dying(
      7, [&](uint64_t client, const HeldGrant& grant) { dying.emplace_back(client, grant.grant); });
  EXPECT_EQ(dying, (std::vector<std::pair<uint64_t, uint64_t>>{{1, 1}, {1, 2}, {2, 3}}));
  table.end_death(7, 1, {grant_of(1), grant_of(2)});
  EXPECT_EQ(table.files_with_dying(), std::vector<uint64_t>{7});
  table.end_death(7, 2, {grant_of(3)});
  EXPECT_TRUE(table.files_with_dying().empty());
  EXPECT_FALSE(table.in_use(7));
}

}  // namespace
}  // namespace pnfsrdma::mds
