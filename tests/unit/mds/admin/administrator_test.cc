// SPDX-License-Identifier: Apache-2.0
#include "server/mds/admin/administrator.h"

#include <gtest/gtest.h>

#include "tests/unit/mds/admin/admin_world.h"

namespace pnfsrdma::mds::testing {
namespace {

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
