// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "server/console/page.h"
#include "server/console/unix_names.h"
#include "tests/doubles/manual_clock.h"
#include "tests/unit/console/api_world.h"

namespace pnfsrdma::console::testing {
namespace {

class QuotaResource : public ::testing::Test {
 protected:
  // Before anybody asks.
  void has(QuotaKind kind, uint64_t id, const QuotaLimits& limits, const QuotaUse& space,
           const QuotaUse& inodes) {
    world.administration.all_quotas[{kind, id}] = {.kind = kind,
                                                   .id = id,
                                                   .path = kind == QuotaKind::kTree ? "/tree" : "",
                                                   .limits_from = QuotaSource::kOwn,
                                                   .limits = limits,
                                                   .space = space,
                                                   .inodes = inodes};
  }
  HttpResponse patch(const std::string& path, const Json& body, const std::string& if_match = "*") {
    return world.send(ApiWorld::with(world.request("PATCH", path, body), "if-match", if_match));
  }
  Json get(const std::string& path) { return ApiWorld::json_of(world.send("GET", path)); }
  const Quota& stored(QuotaKind kind, uint64_t id) { return world.administration.all_quotas.at({kind, id}); }

  ApiWorld world;
};

const std::string kUser = "/api/v1/quotas/user/1000";

TEST_F(QuotaResource, WhatIsNotNamedStays) {
  has(QuotaKind::kUser, 1000, {.space = {1, 2}, .inodes = {3, 4}}, {}, {});
  EXPECT_EQ(patch(kUser, {{"space_hard_bytes", 8192}, {"inodes_soft", 0}}).status, 200);
  const QuotaLimits expected{.space = {1, 8192}, .inodes = {0, 4}};
  EXPECT_EQ(stored(QuotaKind::kUser, 1000).limits, expected);
}

TEST_F(QuotaResource, WhatMakesNoSenseNamesTheMemberAndTheFixAndChangesNothing) {
  has(QuotaKind::kUser, 1000, {.space = {1, 2}, .inodes = {}}, {}, {});
  const auto response = patch(kUser, {{"space_soft_bytes", 3}, {"inodes_hard", 7}});
  EXPECT_EQ(response.status, 422);
  const Json problem = ApiWorld::json_of(response);
  EXPECT_EQ(problem["errors"][0]["pointer"], "/space_soft_bytes");
  EXPECT_EQ(problem["errors"][0]["detail"], "is above the hard limit, 2");
  EXPECT_NE(problem["fix"].get<std::string>().find("space_hard_bytes"), std::string::npos);
  EXPECT_EQ(stored(QuotaKind::kUser, 1000).limits.inodes, QuotaLimit{});
  EXPECT_EQ(patch(kUser, {{"space_hard_bytes", -1}}).status, 422);
  EXPECT_EQ(patch(kUser, {{"space_hard", 1}}).status, 422);
  EXPECT_EQ(ApiWorld::json_of(patch(kUser, Json::object()))["detail"], "nothing to change");
}

// Neither switches quotas on: there is nothing to hold.
TEST_F(QuotaResource, NoLimitsThatAreSetOrRemovedBeginNothing) {
  EXPECT_EQ(patch(kUser, {{"space_hard_bytes", 0}}).status, 200);
  EXPECT_EQ(world.send("DELETE", kUser).status, 404);
  EXPECT_EQ(world.administration.quota_settings.state, QuotaState::kOff);
  EXPECT_EQ(patch(kUser, {{"space_hard_bytes", 4096}}).status, 200);
  EXPECT_EQ(world.administration.quota_settings.state, QuotaState::kOn);
}

TEST_F(QuotaResource, EverybodysLimitsAreASetting) {
  const std::string settings = "/api/v1/quota-settings";
  const Json member = {{"space_soft_bytes", 1}, {"space_hard_bytes", 2}};
  EXPECT_EQ(patch(settings, {{"user_default", member}}).status, 200);
  EXPECT_EQ(get(settings)["user_default"]["space_hard_bytes"], 2);
  EXPECT_EQ(get(settings)["group_default"]["space_hard_bytes"], 0);
  EXPECT_EQ(get(kUser)["limits_from"], "default");
  EXPECT_EQ(get(kUser)["space_hard_bytes"], 2);
  EXPECT_EQ(world.send("DELETE", kUser).status, 404) << "it has none of its own";
  const auto wrong = patch(settings, {{"user_default", {{"space_soft_bytes", 3}}}});
  EXPECT_EQ(wrong.status, 422);
  EXPECT_EQ(ApiWorld::json_of(wrong)["errors"][0]["pointer"], "/user_default/space_soft_bytes");
  EXPECT_EQ(patch(settings, {{"user_default", Json::object()}}).status, 422);
  EXPECT_EQ(patch(settings, {{"user_default", {{"space_hard", 1}}}}).status, 422);
  EXPECT_EQ(get(settings)["user_default"]["space_soft_bytes"], 1);
  // The same ones, but his own.
  EXPECT_EQ(patch(kUser, member).status, 200);
  EXPECT_EQ(get(kUser)["limits_from"], "own");
  EXPECT_EQ(world.send("DELETE", kUser).status, 204);
}

TEST_F(QuotaResource, ASettingThatWasNotSeenIsNotOverwritten) {
  const std::string settings = "/api/v1/quota-settings";
  const std::string etag = ApiWorld::header_of(world.send("GET", settings), "ETag");
  EXPECT_EQ(patch(settings, {{"group_default", {{"inodes_hard", 7}}}}, etag).status, 200);
  EXPECT_EQ(patch(settings, {{"group_default", {{"inodes_hard", 8}}}}, etag).status, 412);
}

TEST_F(QuotaResource, AChangeIsOfWhatWasSeen) {
  const auto seen = world.send("GET", kUser);
  const std::string etag = ApiWorld::header_of(seen, "ETag");
  EXPECT_EQ(patch(kUser, {{"space_hard_bytes", 4096}}, etag).status, 200);
  EXPECT_EQ(patch(kUser, {{"space_hard_bytes", 8192}}, etag).status, 412);
  // What is used is no change of the limits.
  const std::string now = ApiWorld::header_of(world.send("GET", kUser), "ETag");
  world.administration.all_quotas[{QuotaKind::kUser, 1000}].space.used = 77;
  EXPECT_EQ(patch(kUser, {{"space_hard_bytes", 8192}}, now).status, 200);
}

TEST_F(QuotaResource, UsersAndGroupsHaveTheNamesOfTheHost) {
  const Json root = get("/api/v1/quotas/user/root");
  EXPECT_EQ(root["id"], 0);
  EXPECT_EQ(root["name"], "root");
  EXPECT_EQ(get("/api/v1/quotas/group/root")["name"], "root");
  EXPECT_EQ(get("/api/v1/quotas/user/3999999999")["name"], nullptr);
  const Json none = get("/api/v1/quotas/group/nobody-is-called-so");
  EXPECT_EQ(none["detail"], "the server's host knows no group nobody-is-called-so");
}

TEST_F(QuotaResource, ATreeIsCalledByItsPath) {
  has(QuotaKind::kTree, 3, {}, {.used = 4096, .soft_until = {}}, {});
  const Json tree = get("/api/v1/quotas/tree/3");
  EXPECT_EQ(tree["name"], "/tree");
  EXPECT_EQ(tree["space_used_bytes"], 4096);
  world.administration.all_quotas[{QuotaKind::kTree, 3}].path = "";
  EXPECT_EQ(get("/api/v1/quotas/tree/3?")["kind"], "tree");
  EXPECT_EQ(get("/api/v1/quotas/tree/4")["status"], 404);
}

TEST_F(QuotaResource, SaysWhoIsOver) {
  const int64_t now = world.clock.wall_now().seconds;
  const QuotaLimits limits{.space = {10, 20}, .inodes = {10, 0}};
  has(QuotaKind::kUser, 1, limits, {.used = 10, .soft_until = {}}, {});
  has(QuotaKind::kUser, 2, limits, {.used = 11, .soft_until = WallTime{now + 1000, 0}}, {});
  has(QuotaKind::kUser, 3, limits, {.used = 11, .soft_until = WallTime{now - 1000, 0}}, {});
  has(QuotaKind::kUser, 4, limits, {.used = 20, .soft_until = WallTime{now + 1000, 0}}, {});
  has(QuotaKind::kUser, 5, limits, {}, {.used = 11, .soft_until = WallTime{now - 1, 0}});
  const Json items = get("/api/v1/quotas")["items"];
  const std::vector<std::string> expected{"ok", "over-soft", "grace-over", "full", "ok"};
  ASSERT_EQ(items.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(items[i]["space_state"], expected[i]) << i;
  EXPECT_EQ(items[0]["space_grace_ends"], nullptr);
  EXPECT_TRUE(items[1]["space_grace_ends"].is_string());
  EXPECT_EQ(items[4]["inodes_state"], "grace-over");
}

TEST_F(QuotaResource, PagesLeaveNothingOutAndEndWithTheList) {
  for (const QuotaKind kind : {QuotaKind::kUser, QuotaKind::kGroup, QuotaKind::kTree}) {
    for (const uint64_t id : {2, 10, 100}) has(kind, id, {}, {}, {});
  }
  std::vector<std::string> seen;
  std::string cursor;
  int pages = 0;
  do {
    const Json page = get("/api/v1/quotas?limit=3" + (cursor.empty() ? "" : "&cursor=" + cursor));
    for (const Json& item : page["items"])
      seen.push_back(item["kind"].get<std::string>() + " " + to_text(item["id"]));
    cursor = page["next_cursor"].is_string() ? page["next_cursor"].get<std::string>() : "";
    EXPECT_EQ(page["settings"]["state"], "off");
    ++pages;
  } while (!cursor.empty() && pages < 9);
  EXPECT_EQ(pages, 3);
  EXPECT_EQ(seen, (std::vector<std::string>{"user 2", "user 10", "user 100", "group 2", "group 10",
                                            "group 100", "tree 2", "tree 10", "tree 100"}));
  EXPECT_EQ(get("/api/v1/quotas?kind=group")["items"].size(), 3u);
}

TEST_F(QuotaResource, ACursorIsOfItsList) {
  for (const uint64_t id : {1, 2}) has(QuotaKind::kUser, id, {}, {}, {});
  const std::string cursor = get("/api/v1/quotas?kind=user&limit=1")["next_cursor"];
  EXPECT_EQ(get("/api/v1/quotas?kind=user&cursor=" + cursor)["items"].size(), 1u);
  EXPECT_EQ(get("/api/v1/quotas?kind=tree&cursor=" + cursor)["status"], 400);
  for (const char* place : {"3-1", "0", "0-", "0-x", "00"})
    EXPECT_EQ(get("/api/v1/quotas?cursor=" + seal_cursor(place))["status"], 400) << place;
}

TEST_F(QuotaResource, ARemovedTreeIsGoneAndItsFilesAreNot) {
  const auto made = world.send("POST", "/api/v1/quota-trees", {{"path", "/projects"}});
  ASSERT_EQ(made.status, 201);
  const std::string location = ApiWorld::header_of(made, "Location");
  EXPECT_EQ(location, "/api/v1/quotas/tree/1");
  EXPECT_EQ(ApiWorld::json_of(made)["complete"], false);
  EXPECT_EQ(world.send("DELETE", location).status, 204);
  EXPECT_EQ(world.send("GET", location).status, 404);
}

TEST_F(QuotaResource, RemovedLimitsAreAllOfThem) {
  has(QuotaKind::kGroup, 7, {.space = {1, 2}, .inodes = {3, 4}}, {.used = 1, .soft_until = {}}, {});
  EXPECT_EQ(world.send("DELETE", "/api/v1/quotas/group/7").status, 204);
  EXPECT_EQ(stored(QuotaKind::kGroup, 7).limits, QuotaLimits{});
}

TEST_F(QuotaResource, OnIsForGood) {
  const std::string path = "/api/v1/quota-settings";
  EXPECT_EQ(get(path)["counted_share"], nullptr);
  EXPECT_EQ(ApiWorld::json_of(patch(path, {{"on", false}}))["errors"][0]["pointer"], "/on");
  EXPECT_EQ(world.administration.quota_settings.state, QuotaState::kOff);
  EXPECT_EQ(patch(path, {{"space_grace_seconds", 60}}).status, 200);
  EXPECT_EQ(world.administration.quota_settings.state, QuotaState::kOff);
  const Json counting = ApiWorld::json_of(patch(path, {{"on", true}}));
  EXPECT_EQ(counting["state"], "counting");
  EXPECT_EQ(counting["counted_share"], 0.43);
  EXPECT_EQ(counting["space_grace_seconds"], 60);
  EXPECT_EQ(counting["inode_grace_seconds"], 604800);
  EXPECT_EQ(patch(path, {{"inode_grace_seconds", 315360001}}).status, 422);
  EXPECT_EQ(patch(path, Json::object()).status, 422);
}

TEST(UnixNames, AreAskedForOnceAMinute) {
  ManualClock clock;
  int asked = 0;
  UnixNames names(clock, [&](UnixNames::Kind kind, uint32_t id) -> Result<std::optional<std::string>> {
    ++asked;
    if (id == 404) return std::nullopt;
    return (kind == UnixNames::Kind::kUser ? "u" : "g") + std::to_string(id);
  });
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(names.name_of(UnixNames::Kind::kUser, 7), "u7");
    EXPECT_EQ(names.name_of(UnixNames::Kind::kGroup, 7), "g7");
    EXPECT_EQ(names.name_of(UnixNames::Kind::kUser, 404), std::nullopt);
  }
  EXPECT_EQ(asked, 3);
  clock.advance(UnixNames::kFresh);
  EXPECT_EQ(names.name_of(UnixNames::Kind::kUser, 7), "u7");
  EXPECT_EQ(asked, 4);
}

// A page of a thousand users does not wait a thousand times for a server that is away.
TEST(UnixNames, OfANameServiceThatFailsAreNotWaitedFor) {
  ManualClock clock;
  int asked = 0;
  bool fails = true;
  UnixNames names(clock, [&](UnixNames::Kind, uint32_t) -> Result<std::optional<std::string>> {
    ++asked;
    if (fails) return fail(EIO, "LDAP");
    return "alice";
  });
  for (uint32_t id = 0; id < 1000; ++id) EXPECT_EQ(names.name_of(UnixNames::Kind::kUser, id), std::nullopt);
  EXPECT_EQ(asked, 1);
  fails = false;
  clock.advance(UnixNames::kSilence);
  EXPECT_EQ(names.name_of(UnixNames::Kind::kUser, 0), "alice");
}

TEST(UnixNames, AreForgottenWhenThereAreMany) {
  ManualClock clock;
  int asked = 0;
  UnixNames names(clock, [&](UnixNames::Kind, uint32_t) -> Result<std::optional<std::string>> {
    ++asked;
    return "alice";
  });
  const auto many = static_cast<uint32_t>(UnixNames::kNamesMax);
  for (uint32_t id = 0; id <= many; ++id) names.name_of(UnixNames::Kind::kUser, id);
  names.name_of(UnixNames::Kind::kUser, many);
  EXPECT_EQ(asked, static_cast<int>(many) + 1);
  names.name_of(UnixNames::Kind::kUser, 0);
  EXPECT_EQ(asked, static_cast<int>(many) + 2);
}

}  // namespace
}  // namespace pnfsrdma::console::testing
