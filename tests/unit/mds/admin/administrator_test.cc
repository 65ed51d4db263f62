// SPDX-License-Identifier: Apache-2.0
#include "server/mds/admin/administrator.h"

#include <gtest/gtest.h>

#include "tests/unit/mds/admin/admin_world.h"

namespace pnfsrdma::mds::testing {
namespace {

// When the administrator is told, who is not let in any more reaches nothing.
TEST(Administrator, AnExportThatAdmitsSomeNoLongerRevokesTheirLayouts) {
  AdminWorld world;
  LayoutWorld& layouts = world.layouts;
  const ClientId stays = world.add_client();
  ClientId goes = 0;
  while (world.server.clients.size() <= 256) goes = world.add_client();  // the next network
  const InodeId file = layouts.create("file");
  const InodeId other = layouts.create("other");
  world.add_layout(stays, file, 1, 1);
  world.add_layout(goes, other, 1, 1);
  world.add_layout(goes, file, 1, 2);  // through another export
  console::ExportRules rules{.path = "/", .root_squash = false};
  rules.clients = {"10.0.0.0/16"};
  layouts.brick.hold_withdrawals = true;
  bool answered = false;
  world.administrator.change_export(1, rules, [&](const Result<console::Export>& changed) {
    EXPECT_TRUE(changed) << changed.error().to_string();
    answered = true;
  });
  layouts.settle();
  EXPECT_FALSE(answered) << "the brick has not withdrawn it yet";
  layouts.brick.release();
  layouts.settle();
  EXPECT_TRUE(answered);
  const LayoutTable& table = layouts.mds->table();
  EXPECT_EQ(table.find(other, goes), nullptr);
  EXPECT_NE(table.find(file, goes), nullptr);
  EXPECT_NE(table.find(file, stays), nullptr) << "it is asked for it";
}

// The last run has ended before it had revoked them, or the configuration has changed.
TEST(Administrator, AStartEndsTheLayoutsOfExportsThatAreGone) {
  AdminWorld world;
  const ClientId client = world.add_client();
  const InodeId file = world.layouts.create("file");
  const InodeId other = world.layouts.create("other");
  world.add_layout(client, file, 1, 1);
  world.add_layout(client, other, 1, 99);
  world.administrator.end_layouts_of_gone_exports();
  world.layouts.settle();
  EXPECT_NE(world.layouts.mds->table().find(file, client), nullptr);
  EXPECT_EQ(world.layouts.mds->table().find(other, client), nullptr);
}

}  // namespace
}  // namespace pnfsrdma::mds::testing
