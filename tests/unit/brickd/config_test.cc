// SPDX-License-Identifier: Apache-2.0
#include "server/brickd/config.h"

#include <gtest/gtest.h>

namespace pnfsrdma::brick {
namespace {

std::string error_of(const std::string& json) {
  const auto config = parse_config(json);
  return config ? "" : config.error().what();
}

TEST(BrickConfig, OnlyThePathIsRequired) {
  const auto config = parse_config(R"({"pool": {"path": "/srv/pool"}})");
  ASSERT_TRUE(config) << config.error().to_string();
  EXPECT_EQ(config->data.listen, std::vector<std::string>{"127.0.0.1:20051"});
  EXPECT_EQ(config->data.rdma, std::vector<std::string>{"auto"});
  EXPECT_EQ(config->lease_seconds, 30u);
  EXPECT_NE(error_of("{}").find("pool.path"), std::string::npos);
}

TEST(BrickConfig, WhatItPrintsItReads) {
  auto config = parse_config(R"({"pool": {"path": "/p", "size": "4G", "durability": "process"},
    "data": {"listen": ["0.0.0.0:1", "[::]:2"], "advertise": ["192.0.2.1:1"], "crc": "on"},
    "limits": {"sessions": 3}, "lease_seconds": 7, "control": {"tcp": ":20050"}})");
  ASSERT_TRUE(config) << config.error().to_string();
  const std::string printed = print_config(*config);
  const auto again = parse_config(printed);
  ASSERT_TRUE(again) << again.error().to_string();
  EXPECT_EQ(print_config(*again), printed);
  EXPECT_EQ(again->limits.sessions, 3u);
  EXPECT_EQ(again->data.listen.size(), 2u);
}

TEST(BrickConfig, ErrorsNameTheKey) {
  EXPECT_NE(error_of(R"({"pool": {"path": "/p", "sise": "4G"}})").find("pool.sise"), std::string::npos);
  EXPECT_NE(error_of(R"({"pol": {}})").find("pol"), std::string::npos);
  EXPECT_NE(error_of(R"({"pool": "x"})").find("pool"), std::string::npos);
  EXPECT_NE(error_of(R"({"pool": {"path": 3}})").find("pool.path"), std::string::npos);
  EXPECT_NE(error_of(R"({"pool": {"path": "/p"}, "lease_seconds": -1})").find("lease_seconds"),
            std::string::npos);
  EXPECT_NE(error_of(R"({"pool": {"path": "/p", "durability": "eternal"}})").find("\"process\""),
            std::string::npos);
  EXPECT_NE(error_of(R"({"pool": {"path": "/p"}, "data": {"rdma": ["0.0.0.0:1"]}})").find("data.rdma"),
            std::string::npos);
  EXPECT_NE(error_of(R"({"pool": {"path": "/p"}, "data": {"listen": ["0.0.0.0:1"]}})").find("advertise"),
            std::string::npos);
  EXPECT_FALSE(error_of("{").empty());
  EXPECT_FALSE(error_of("[]").empty());
}

TEST(BrickConfig, TlsNeedsAllItsFilesAndAPort) {
  const auto with = [](const std::string& control) {
    return R"({"pool": {"path": "/p"}, "control": )" + control + "}";
  };
  const std::string files = R"("certificate": "/c", "key": "/k", "ca_file": "/a")";
  const auto config = parse_config(with(R"({"tcp": ":1", "tls": {)" + files + R"(, "peers": ["alpha"]}})"));
  ASSERT_TRUE(config) << config.error().to_string();
  EXPECT_TRUE(config->control.tls.wanted());
  EXPECT_EQ(config->control.tls.peers, std::vector<std::string>{"alpha"});
  EXPECT_EQ(print_config(*parse_config(print_config(*config))), print_config(*config));
  EXPECT_FALSE(parse_config(with(R"({"tcp": ":1"})"))->control.tls.wanted());

  EXPECT_NE(error_of(with(R"({"tcp": ":1", "tls": {"certificate": "/c", "key": "/k"}})")).find("ca_file"),
            std::string::npos);
  EXPECT_NE(error_of(with(R"({"tcp": ":1", "tls": {"peers": ["a"]}})")).find("control.tls.peers"),
            std::string::npos);
  EXPECT_NE(error_of(with(R"({"tls": {)" + files + "}}")).find("control.tcp"), std::string::npos);
  EXPECT_NE(error_of(with(R"({"tls": {"cert": "/c"}})")).find("control.tls.cert"), std::string::npos);
  EXPECT_NE(error_of(with(R"({"tls": "yes"})")).find("control.tls"), std::string::npos);
  EXPECT_NE(error_of(with(R"({"tls": {"peers": "a"}})")).find("control.tls.peers"), std::string::npos);
}

TEST(BrickConfig, TakesComments) {
  EXPECT_TRUE(parse_config("// a brick\n{\"pool\": {\"path\": \"/p\"} /* the data */}"));
}

TEST(BrickConfig, OnlyAFileOfAKnownSizeIsMadeAtStart) {
  EXPECT_TRUE(parse_config(R"({"pool": {"path": "/p", "size": "1G", "create": true}})")->pool.create);
  EXPECT_TRUE(parse_config(R"({"pool": {"path": "/dev/shm/p", "size": "1G", "create": true}})"));
  EXPECT_NE(error_of(R"({"pool": {"path": "/p", "create": true}})").find("pool.size"), std::string::npos);
  EXPECT_NE(error_of(R"({"pool": {"path": "/dev/dax0.0", "size": "1G", "create": true}})").find("--format"),
            std::string::npos);
}

TEST(BrickConfig, SizesHaveUnits) {
  EXPECT_EQ(*parse_size("4G"), uint64_t{4} << 30);
  EXPECT_EQ(*parse_size("512M"), uint64_t{512} << 20);
  EXPECT_EQ(*parse_size("1048576"), uint64_t{1} << 20);
  for (const char* bad : {"", "G", "4X", "4GB", "-1", "0", "99999999P", "4 G"})
    EXPECT_FALSE(parse_size(bad)) << bad;
}

}  // namespace
}  // namespace pnfsrdma::brick
