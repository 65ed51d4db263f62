// SPDX-License-Identifier: Apache-2.0
#include "server/mds/brick_tls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>

#include "tests/doubles/test_authority.h"

namespace pnfsrdma::mds {
namespace {

class BrickTlsTest : public ::testing::Test {
 protected:
  BrickTlsTest() {
    authority.issue("mds", {});
    authority.issue("other", {});
  }
  ~BrickTlsTest() override { std::filesystem::remove_all(folder); }
  static std::filesystem::path make_folder() {
    std::string name = (std::filesystem::temp_directory_path() / "brick-tls.XXXXXX").string();
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    return name;
  }
  Config with(const std::string& name) const {
    Config config;
    config.brick_tls = {.ca_file = authority.file("ca.pem"),
                        .certificate = authority.file(name + ".pem"),
                        .key = authority.file(name + ".key"),
                        .plain = {"tcp:192.0.2.9:20050"}};
    return config;
  }

  const std::filesystem::path folder = make_folder();
  TestAuthority authority{folder};
};

TEST_F(BrickTlsTest, WithACertificateAllTcpBricksAreReachedByIt) {
  const auto tls = BrickTls::open(with("mds"));
  ASSERT_TRUE(tls) << tls.error().to_string();
  EXPECT_NE(*(*tls)->endpoint_for("tcp:192.0.2.1:20050", false), nullptr);
  EXPECT_EQ(*(*tls)->endpoint_for("tcp:192.0.2.9:20050", true), nullptr) << "named as an exception";
  EXPECT_EQ(*(*tls)->endpoint_for("unix:/run/pnfsrdma/brick.sock", false), nullptr);
}

TEST_F(BrickTlsTest, WithoutOneABrickThatWasReachedByTlsIsNotReachedInPlain) {
  const auto tls = BrickTls::open(Config());
  ASSERT_TRUE(tls);
  EXPECT_EQ(*(*tls)->endpoint_for("tcp:192.0.2.1:20050", false), nullptr);
  const auto refused = (*tls)->endpoint_for("tcp:192.0.2.1:20050", true);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().number(), EACCES);
  EXPECT_THAT(refused.error().what(), testing::HasSubstr("brick_tls.plain"));
}

TEST_F(BrickTlsTest, AReloadKeepsItsEndpointAndAMistakeChangesNothing) {
  const auto tls = BrickTls::open(with("mds"));
  const auto before = *(*tls)->endpoint_for("tcp:a:1", false);
  ASSERT_TRUE((*tls)->reload(with("other")));
  EXPECT_EQ(*(*tls)->endpoint_for("tcp:a:1", false), before);
  const auto mistaken = (*tls)->reload(with("nobody"));
  ASSERT_FALSE(mistaken);
  EXPECT_THAT(mistaken.error().what(), testing::HasSubstr("brick_tls"));
  EXPECT_EQ(*(*tls)->endpoint_for("tcp:a:1", false), before);
  ASSERT_TRUE((*tls)->reload(Config()));
  EXPECT_EQ(*(*tls)->endpoint_for("tcp:a:1", false), nullptr);
  ASSERT_TRUE((*tls)->reload(with("mds")));
  EXPECT_NE(*(*tls)->endpoint_for("tcp:a:1", false), nullptr);
}

}  // namespace
}  // namespace pnfsrdma::mds
