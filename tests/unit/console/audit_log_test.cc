// SPDX-License-Identifier: Apache-2.0
#include "server/console/audit_log.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/unit/console/api_world.h"

namespace pnfsrdma::console {
namespace {

using testing::TemporaryFolder;

TEST(AuditLog, NumbersGoOnOverARestart) {
  TemporaryFolder folder;
  {
    auto log = *AuditLog::open(folder.path());
    EXPECT_EQ(*log->add({{"user", "a"}}), 1u);
    EXPECT_EQ(*log->add({{"user", "b"}}), 2u);
  }
  // A line cut off by a crash.
  std::ofstream(folder / "audit.log", std::ios::app) << "{\"sequence\":3,\"us";
  auto log = *AuditLog::open(folder.path());
  EXPECT_EQ(*log->add({{"user", "c"}}), 3u);
  const auto all = *log->newest(0, 10);
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0]["user"], "c");
  EXPECT_EQ(all[2]["user"], "a");
  EXPECT_EQ((*log->newest(3, 1))[0]["user"], "b");
}

TEST(AuditLog, OldOnesGoBySize) {
  TemporaryFolder folder;
  auto log = *AuditLog::open(folder.path(), 200);
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(log->add({{"user", std::string(50, 'x')}}));
  EXPECT_TRUE(std::filesystem::exists(folder / "audit.log.4"));
  EXPECT_FALSE(std::filesystem::exists(folder / "audit.log.5"));
  const auto kept = *log->newest(0, 1000);
  EXPECT_EQ(kept.front()["sequence"], 100);
  for (size_t i = 1; i < kept.size(); ++i)
    EXPECT_EQ(kept[i]["sequence"].get<int>() + 1, kept[i - 1]["sequence"].get<int>());
  EXPECT_LT(kept.size(), 30u);
}

TEST(AuditLog, SaysWhoDidWhatBeforeAndAfterWithoutSecrets) {
  testing::ApiWorld world;
  ASSERT_EQ(world.send("PUT", "/api/v1/users/eve", {{"role", "viewer"}, {"password", "long enough"}}).status,
            201);
  HttpRequest change = world.request("PUT", "/api/v1/users/eve", {{"role", "operator"}});
  ASSERT_EQ(world.send(testing::ApiWorld::with(change, "if-match", "*")).status, 200);
  const Json items = testing::ApiWorld::json_of(world.send("GET", "/api/v1/audit"))["items"];
  ASSERT_EQ(items.size(), 2u);
  EXPECT_EQ(items[0]["user"], "root");
  EXPECT_EQ(items[0]["action"], "putUser");
  EXPECT_EQ(items[0]["before"]["role"], "viewer");
  EXPECT_EQ(items[0]["after"]["role"], "operator");
  EXPECT_FALSE(items[1]["after"].contains("password"));
  // Refused changes are not in it: nothing was changed.
  EXPECT_EQ(world.send("PUT", "/api/v1/users/eve", {{"role", "boss"}}).status, 422);
  EXPECT_EQ(testing::ApiWorld::json_of(world.send("GET", "/api/v1/audit"))["items"].size(), 2u);
}

}  // namespace
}  // namespace pnfsrdma::console
