// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "server/console/inventory_json.h"
#include "tests/unit/console/api_world.h"

namespace pnfsrdma::console::testing {
namespace {

const std::string kPath = "/api/v1/bricks/" + kBrickId;

TEST(Bricks, OneThatHoldsDataStaysAndSaysWhose) {
  ApiWorld world;
  const auto refused = world.send("DELETE", kPath);
  EXPECT_EQ(refused.status, 409);
  const Json problem = ApiWorld::json_of(refused);
  EXPECT_EQ(problem["type"], "/api/v1/problems/brick-in-use");
  EXPECT_EQ(problem["holders"], Json({{"files", 3}, {"bytes", 4096}, {"exports", {"/"}}}));
  world.administration.brick_in_use = false;
  EXPECT_EQ(world.send("DELETE", kPath).status, 204);
}

TEST(Bricks, AreFormattedOnlyWhenTheirIdIsRepeated) {
  ApiWorld world;
  world.administration.brick_in_use = false;
  EXPECT_EQ(world.send("POST", kPath + "/format", Json::object()).status, 422);
  const auto started = world.send("POST", kPath + "/format", {{"confirm", kBrickId}});
  EXPECT_EQ(started.status, 202);
  EXPECT_EQ(ApiWorld::header_of(started, "Location"), "/api/v1/jobs/1");
  EXPECT_EQ(ApiWorld::json_of(started)["user"], "root");
}

TEST(Bricks, AreFoundByTheIdTheyHadBeforeTheyWereReachedButNotFormattedByIt) {
  ApiWorld world;
  world.administration.brick_in_use = false;
  EXPECT_EQ(ApiWorld::json_of(world.send("GET", "/api/v1/bricks/new-1"))["id"], kBrickId);
  EXPECT_EQ(world.send("GET", "/api/v1/bricks/new-1/blocks").status, 200);
  EXPECT_EQ(world.send("POST", "/api/v1/bricks/new-1/format", {{"confirm", "new-1"}}).status, 422);
  EXPECT_EQ(world.send("POST", "/api/v1/bricks/new-1/check").status, 202);
  EXPECT_EQ(world.send("DELETE", "/api/v1/bricks/new-1").status, 204);
  EXPECT_EQ(world.send("GET", "/api/v1/bricks/new-2").status, 404);
}

TEST(Bricks, AreCalledWhatPeopleCallThem) {
  ApiWorld world;
  const auto change = [&](const Json& body) {
    return world.send(ApiWorld::with(world.request("PATCH", kPath, body), "if-match", "*"));
  };
  const auto named = change({{"name", "rack 3 left"}});
  EXPECT_EQ(named.status, 200);
  EXPECT_EQ(ApiWorld::json_of(named)["name"], "rack 3 left");
  // A name that is taken adds nothing, and says why.
  EXPECT_EQ(
      world.send("POST", "/api/v1/bricks", {{"address", "tcp:192.0.2.9:20050"}, {"name", "rack 3 left"}})
          .status,
      409);
  const auto other =
      world.send("POST", "/api/v1/bricks", {{"address", "tcp:192.0.2.9:20050"}, {"name", "rack 4"}});
  EXPECT_EQ(other.status, 201);
  EXPECT_EQ(ApiWorld::json_of(other)["name"], "rack 4");
  EXPECT_EQ(change({{"name", "<b>"}}).status, 422);
}

TEST(Bricks, BlocksComeInPagesThatCoverEverythingOnce) {
  ApiWorld world;
  std::string cursor;
  uint64_t next = 0;
  do {
    const Json page = ApiWorld::json_of(
        world.send("GET", kPath + "/blocks?limit=1" + (cursor.empty() ? "" : "&cursor=" + cursor)));
    ASSERT_EQ(page["runs"].size(), 1u);
    EXPECT_EQ(page["runs"][0]["block"], next);
    next += page["runs"][0]["count"].get<uint64_t>();
    cursor = page["next_cursor"].is_null() ? "" : page["next_cursor"].get<std::string>();
  } while (!cursor.empty());
  EXPECT_EQ(next, 100u);
}

TEST(Bricks, PathsAreReadable) {
  Brick brick;
  brick.paths = {{"tcp", "192.0.2.7.78.83"}, {"rdma6", "2001:db8::1.78.84"}, {"tcp", "odd"}};
  const Json paths = to_json(brick)["paths"];
  EXPECT_EQ(paths[0]["endpoint"], "192.0.2.7:20051");
  EXPECT_EQ(paths[1]["endpoint"], "[2001:db8::1]:20052");
  EXPECT_EQ(paths[2]["endpoint"], "odd");
}

TEST(Layouts, AByteThatSeveralHandlesReachCountsOnce) {
  Layout layout;
  layout.grants = {{.length = 96, .logical = 1000},
                   {.length = 96, .writable = true, .logical = 1000},
                   {.length = 10, .logical = 1090},
                   {.length = 5, .logical = 5000}};
  const Json shown = to_json(layout);
  EXPECT_EQ(shown["bytes"], 105);
  EXPECT_EQ(shown["writable_bytes"], 96);
}

TEST(Ids, OfLayoutsReadBack) {
  const LayoutId id = layout_of(layout_id(0xA11CE, 42));
  EXPECT_EQ(id.client, 0xA11CEu);
  EXPECT_EQ(id.inode, 42u);
  EXPECT_EQ(layout_of("x").client, 0u);
}

TEST(Layouts, ComeInPagesInAnOrderThatStays) {
  ApiWorld world;
  world.administration.layouts.clear();
  for (uint64_t inode = 1; inode <= 25; ++inode)
    world.administration.layouts.push_back({.client = kAlice, .inode = inode, .state = LayoutState::kHeld});
  std::vector<uint64_t> seen;
  std::string cursor;
  do {
    const Json page = ApiWorld::json_of(
        world.send("GET", "/api/v1/layouts?limit=10" + (cursor.empty() ? "" : "&cursor=" + cursor)));
    for (const Json& item : page["items"]) seen.push_back(item["inode"]);
    cursor = page["next_cursor"].is_null() ? "" : page["next_cursor"].get<std::string>();
  } while (!cursor.empty());
  ASSERT_EQ(seen.size(), 25u);
  for (uint64_t i = 0; i < 25; ++i) EXPECT_EQ(seen[i], i + 1);
}

}  // namespace
}  // namespace pnfsrdma::console::testing
