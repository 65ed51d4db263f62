// SPDX-License-Identifier: Apache-2.0
#include "server/mds/admin/activity_view.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>

#include "server/mds/admin/id_walk.h"
#include "tests/unit/mds/admin/admin_world.h"

namespace pnfsrdma::mds::testing {
namespace {

constexpr size_t kClients = 5 * kIdsPerTurn + 3;

struct ManyClients : ::testing::Test {
  AdminWorld world;
  std::vector<ClientId> clients;
  std::shared_ptr<int> alive = std::make_shared<int>();
  std::optional<console::Activity> shown;
  size_t turns = 1;

  ManyClients() {
    for (size_t i = 0; i < kClients; ++i) clients.push_back(world.add_client());
  }
  void begin() {
    view_activity({.loop = world.layouts.loop,
                   .counters = world.layouts.counters,
                   .clients = world.server.clients,
                   .exports = world.server.exports,
                   .bricks = world.layouts.mds->brick_administration()},
                  alive, [this](const auto& later) { shown = (*later)(); });
  }
  void turn() {
    world.layouts.loop.run_once(Milliseconds(0));
    ++turns;
  }
  void finish() {
    while (!shown && turns < 1000) turn();
    ASSERT_TRUE(shown);
  }
};

TEST_F(ManyClients, AreLookedAtSoManyATurn) {
  for (const ClientId id : clients) world.server.clients.find(id)->activity.operations = id;
  begin();
  finish();
  EXPECT_GE(turns, kClients / kIdsPerTurn);
  std::map<ClientId, uint64_t> operations;
  for (const console::ClientActivity& client : shown->clients)
    operations[client.id] = client.served.operations;
  EXPECT_EQ(shown->clients.size(), kClients);
  for (const ClientId id : clients) EXPECT_EQ(operations[id], id);
}

TEST_F(ManyClients, OneThatGoesMeanwhileIsLeftOut) {
  begin();
  ASSERT_FALSE(shown);
  for (const ClientId id : clients) {
    const auto client = world.server.clients.find(id);
    world.server.sessions.destroy_all_of(*client);
    world.server.clients.remove(*client);
  }
  finish();
  EXPECT_EQ(shown->clients.size(), kIdsPerTurn) << "those of the first turn";
}

TEST_F(ManyClients, NobodyIsToldWhenTheServerHasGone) {
  begin();
  ASSERT_FALSE(shown);
  alive.reset();
  for (int i = 0; i < 20; ++i) turn();
  EXPECT_FALSE(shown);
}

TEST_F(ManyClients, ExportsHaveTheirCounters) {
  world.layouts.counters.by_export[1].operations = 77;
  begin();
  finish();
  ASSERT_EQ(shown->exports.size(), 1u);
  EXPECT_EQ(shown->exports.front().served.operations, 77u);
}

// The effect of an export asks who is mounted.
TEST_F(ManyClients, ThoseThatAreMountedAreLookedAtSoManyATurn) {
  std::optional<Result<console::ExportEffect>> effect;
  world.administrator.export_effect({.path = "/inner", .clients = {"10.0.0.0/16"}},
                                    [&](auto told) { effect = std::move(told); });
  EXPECT_FALSE(effect) << "in one turn";
  while (!effect && turns < 1000) turn();
  ASSERT_TRUE(effect && *effect);
  EXPECT_GE(turns, kClients / kIdsPerTurn);
  EXPECT_EQ((*effect)->clients, kClients);
  EXPECT_EQ((*effect)->losing.size(), kClients - 256) << "10.0.x.x may mount it";
}

}  // namespace
}  // namespace pnfsrdma::mds::testing
