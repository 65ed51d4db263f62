// SPDX-License-Identifier: Apache-2.0
#include "server/mds/admin/config.h"

#include <gtest/gtest.h>

namespace pnfsrdma::mds {
namespace {

std::string error_of(const std::string& json) {
  const auto config = parse_config(json);
  return config ? "" : config.error().what();
}

TEST(Config, EmptyObjectIsTheDefaults) {
  const auto config = parse_config("{}");
  ASSERT_TRUE(config.has_value());
  EXPECT_EQ(config->lease_seconds, 30U);
  EXPECT_EQ(config->exports.size(), 1U);
  EXPECT_TRUE(config->delegations);
}

TEST(Config, PrintedIsReadBackTheSame) {
  const auto config = parse_config(
      R"({"listen": ["127.0.0.1:0"], "lease_seconds": 5, "log_level": "debug", "delegations": false,
      "snapshot_schedule": {"hourly": 24, "monthly": 12, "minute": 30},
      "exports": [{"path": "/a", "root_squash": false, "clients": ["10.0.0.0/8"],
                   "old_handles_until": "2026-12-31", "insecure": true, "manage_gids": true},
                  {"path": "/", "read_only": true}]})");
  ASSERT_TRUE(config.has_value());
  const auto again = parse_config(to_json(*config));
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(to_json(*again), to_json(*config));
  EXPECT_FALSE(again->delegations);
  EXPECT_EQ(again->snapshot_schedule, (SnapshotSchedule{.hourly = 24, .monthly = 12, .minute = 30}));
  EXPECT_EQ(again->exports[0].squash, Squash::kNone);
  EXPECT_TRUE(again->exports[0].insecure);
  EXPECT_FALSE(again->exports[1].insecure);
  EXPECT_TRUE(again->exports[0].manage_gids);
  EXPECT_FALSE(again->exports[1].manage_gids);
  EXPECT_EQ(again->exports[0].old_handles_until, (WallTime{.seconds = 1798675200}));
}

TEST(Config, KnowsWhatTheFileHasSaid) {
  const auto config = parse_config(R"({"lease_seconds": 5, "console": {"listen": []}})");
  ASSERT_TRUE(config.has_value());
  EXPECT_EQ(config->given, (std::set<std::string>{"console", "lease_seconds"}));
  EXPECT_TRUE(config->console.listen.empty());
  EXPECT_EQ(config->console.socket, "/run/pnfsrdma/console.sock");
}

TEST(Config, AMetadataLogIsReadBackTheSame) {
  EXPECT_TRUE(parse_config("{}")->metadata_log.endpoints.empty());
  const auto config = parse_config(
      R"({"metadata_log": {"endpoints": ["https://a:2379", "http://[fd5c::a1]:2379"], "prefix": "/p/q", "name": "a",
                           "ca_file": "ca", "certificate": "c", "key": "k"}})");
  ASSERT_TRUE(config.has_value());
  EXPECT_EQ(config->metadata_log.endpoints.size(), 2U);
  const auto again = parse_config(to_json(*config));
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(to_json(*again), to_json(*config));
  EXPECT_EQ(again->metadata_log.key, "k");
}

TEST(Config, WhatIsWrongInAMetadataLogIsNamed) {
  const auto wrong = [](const std::string& member) {
    return error_of("{\"metadata_log\": {" + member + "}}");
  };
  for (const char* endpoint : {"a:2379", "ftp://a:1", "http://", "http://a:1/", "http://a b",
                               "https://fd5c::a1:2379", "https://a:0"})
    EXPECT_NE(wrong(R"("endpoints": [")" + std::string(endpoint) + R"("])").find("endpoints"),
              std::string::npos)
        << endpoint;
  EXPECT_NE(wrong(R"("prefix": "p")").find("prefix"), std::string::npos);
  EXPECT_NE(wrong(R"("prefix": "/")").find("prefix"), std::string::npos);
  EXPECT_NE(wrong(R"("name": "a/b")").find("name"), std::string::npos);
  EXPECT_NE(wrong(R"("certificate": "c")").find("certificate"), std::string::npos);
  EXPECT_NE(wrong(R"("window": 1)").find("window"), std::string::npos);
}

TEST(Config, WhatIsWrongIsNamed) {
  EXPECT_NE(error_of("{"), "");
  EXPECT_NE(error_of("[]"), "");
  EXPECT_NE(error_of(R"({"lease": 3})").find("lease"), std::string::npos);
  EXPECT_NE(error_of(R"({"lease_seconds": 0})").find("lease_seconds"), std::string::npos);
  EXPECT_NE(error_of(R"({"lease_seconds": "x"})").find("lease_seconds"), std::string::npos);
  EXPECT_NE(error_of(R"({"exports": [{"path": "a"}]})").find("path"), std::string::npos);
  EXPECT_NE(error_of(R"({"exports": [{"insecure": 1}]})").find("insecure"), std::string::npos);
  EXPECT_NE(error_of(R"({"exports": [{"manage_gids": "yes"}]})").find("manage_gids"), std::string::npos);
  for (const char* schedule : {"7", R"({"yearly": 1})", R"({"daily": -1})", R"({"daily": 4001})",
                               R"({"hour": 24})", R"({"daily": 2000, "hourly": 2001})"})
    EXPECT_NE(error_of(R"({"snapshot_schedule": )" + std::string(schedule) + "}").find("snapshot_schedule"),
              std::string::npos)
        << schedule;
  for (const char* day : {"2026-13-01", "2026-02-30", "soon", "2026-1-1", "2026-01-01T00"})
    EXPECT_NE(error_of(R"({"exports": [{"old_handles_until": ")" + std::string(day) + R"("}]})")
                  .find("old_handles_until"),
              std::string::npos)
        << day;
  EXPECT_NE(error_of(R"({"exports": [{"path": "/"}, {"path": "/"}]})").find("two"), std::string::npos);
  EXPECT_NE(error_of(R"({"exports": [{"clients": ["x"]}]})").find("x"), std::string::npos);
  EXPECT_NE(error_of(R"({"delegations": 1})").find("delegations"), std::string::npos);
  EXPECT_NE(error_of(R"({"log_level": "loud"})").find("log_level"), std::string::npos);
  EXPECT_NE(error_of(R"({"console": {"certificate": "/x.pem"}})").find("together"), std::string::npos);
  EXPECT_NE(error_of(R"({"console": {"port": 1}})").find("console: unknown key"), std::string::npos);
  EXPECT_NE(error_of(R"({"memory_budget_mib": 63})").find("memory_budget_mib"), std::string::npos);
  EXPECT_NE(error_of(R"({"connections_per_address": 0})").find("connections_per_address"), std::string::npos);
  EXPECT_NE(error_of(R"({"stalled_request_seconds": 0})").find("stalled_request_seconds"), std::string::npos);
  for (const char* mebibytes : {"15", "513"})
    EXPECT_NE(error_of(R"({"memory_per_address_mib": )" + std::string(mebibytes) + "}")
                  .find("memory_per_address_mib"),
              std::string::npos);
  EXPECT_NE(error_of(R"({"bricks": ["tcp:a:1", "tcp:a:1"]})").find("bricks"), std::string::npos);
  EXPECT_NE(error_of(R"({"brick_tls": {"certificate": "/c", "key": "/k"}})").find("ca_file"),
            std::string::npos);
  EXPECT_NE(error_of(R"({"brick_tls": {"ca": "/c"}})").find("brick_tls: unknown key"), std::string::npos);
  EXPECT_NE(error_of(R"({"brick_tls": {"plain": ["192.0.2.1:1"]}})").find("tcp:host:port"),
            std::string::npos);
}

}  // namespace
}  // namespace pnfsrdma::mds
