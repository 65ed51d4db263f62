// SPDX-License-Identifier: Apache-2.0
#include "server/console/audit_log.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
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

// The limit of a file's size stands for a medium that is full in the middle of a line.
TEST(AuditLog, ALineThatFindsNoRoomDoesNotSpoilTheNext) {
  TemporaryFolder folder;
  auto log = *AuditLog::open(folder.path());
  ASSERT_TRUE(log->add({{"user", "a"}}));
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const auto ignored = signal(SIGXFSZ, SIG_IGN);
  const rlimit tight{std::filesystem::file_size(folder / "audit.log") + 10, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &tight);
  EXPECT_FALSE(log->add({{"user", "b"}}));
  setrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, ignored);
  EXPECT_TRUE(log->add({{"user", "c"}}));
  const auto all = *log->newest(0, 10);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0]["user"], "c");
  EXPECT_EQ(all[1]["user"], "a");
}

TEST(AuditLog, SaysWhoTriedWhatTheyMayNotButIsNotWashedOutByIt) {
  testing::ApiWorld world;
  const auto made = world.send("POST", "/api/v1/tokens", {{"name", "t"}, {"role", "viewer"}});
  const std::string secret = testing::ApiWorld::json_of(made)["secret"];
  const HttpRequest change = testing::ApiWorld::with(
      testing::ApiWorld::from(world.request("DELETE", "/api/v1/clients/00000000000a11ce"), "192.0.2.7"),
      "authorization", "Bearer " + secret);
  for (int i = 0; i < 40; ++i) EXPECT_EQ(world.send(change).status, 403);
  const auto entries = *world.audit->newest(0, 100);
  ASSERT_GT(entries.size(), 1u);
  EXPECT_LT(entries.size(), 20u);
  EXPECT_EQ(entries[0]["action"], "deleteClient");
  EXPECT_EQ(entries[0]["status"], 403);
  EXPECT_EQ(entries[0]["origin"], "192.0.2.7");
}

// Nobody hears how it ends, and it may well end as it was asked for.
TEST(AuditLog, HasWhatWasBegunAndNotAnswered) {
  testing::ApiWorld world;
  world.administration.silent = true;
  std::thread asking([&] { EXPECT_EQ(world.send("POST", "/api/v1/exports", {{"path", "/x"}}).status, 503); });
  while (!world.administration.begun) std::this_thread::yield();
  world.loop.stop();
  asking.join();
  const auto entries = *world.audit->newest(0, 10);
  ASSERT_EQ(entries.size(), 1u);
  EXPECT_EQ(entries[0]["action"], "postExport");
  EXPECT_EQ(entries[0]["status"], 503);
}

TEST(AuditLog, AClientOfManyLayoutsDoesNotFillIt) {
  testing::ApiWorld world;
  const Layout one = world.administration.layouts.front();
  for (uint64_t i = 0; i < 2000; ++i) {
    world.administration.layouts.push_back(one);
    world.administration.layouts.back().inode = 1000 + i;
  }
  EXPECT_EQ(world.send("DELETE", "/api/v1/layouts?client=00000000000a11ce").status, 200);
  EXPECT_LT(std::filesystem::file_size(world.folder / "audit.log"), 16u << 10);
  EXPECT_EQ(world.audit->newest(0, 1)->front()["before"]["layouts"], 2001);
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
