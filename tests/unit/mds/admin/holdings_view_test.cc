// SPDX-License-Identifier: Apache-2.0
#include "server/mds/admin/holdings_view.h"

#include <gtest/gtest.h>

#include <optional>

#include "server/mds/admin/layout_walk.h"
#include "tests/unit/mds/admin/admin_world.h"

namespace pnfsrdma::mds::testing {
namespace {

TEST(HoldingsView, SaysOnWhichBrickEachGrantIs) {
  AdminWorld world;
  const ClientId client = world.add_client();
  world.add_layout(client, 7, 3);
  std::optional<console::Holdings> shown;
  world.administrator.holdings([&](const auto& later) { shown = (*later)(); });
  world.layouts.settle();
  ASSERT_TRUE(shown);
  ASSERT_EQ(shown->layouts.size(), 1u);
  ASSERT_EQ(shown->layouts.front().grants.size(), 3u);
  for (const console::Grant& grant : shown->layouts.front().grants)
    EXPECT_EQ(grant.brick, uuid_text(world.layouts.brick.uuid));
  ASSERT_EQ(shown->clients.size(), 1u);
  EXPECT_EQ(shown->clients.front().grants, 3u);
}

TEST(HoldingsView, LayoutsOfManyGrantsAreSpreadOverTurns) {
  AdminWorld world;
  const ClientId client = world.add_client();
  constexpr size_t kLayouts = 64;
  for (size_t i = 1; i <= kLayouts; ++i) world.add_layout(client, i, 8 * kGrantsAsOneLayout);
  bool done = false;
  size_t turns = 0;
  world.administrator.holdings([&](const auto& later) { done = (*later)().layouts.size() == kLayouts; });
  for (; !done && turns < 1000; ++turns) world.layouts.loop.run_once(Milliseconds(0));
  EXPECT_TRUE(done);
  EXPECT_GE(turns, 9 * kLayouts / kLayoutsViewedPerTurn);
}

}  // namespace
}  // namespace pnfsrdma::mds::testing
