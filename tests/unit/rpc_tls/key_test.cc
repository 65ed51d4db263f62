// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/rpc_tls/protected_pair.h"

namespace pnfsrdma::rpc_tls {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// Both sides have a key in place of certificates.
class ByKey : public ProtectedPair {
 protected:
  ByKey() {
    server_tls_ = of("tank", 1, Role::kServer);
    client_tls_ = of("tank", 1, Role::kClient);
  }
  static std::shared_ptr<Endpoint> of(const std::string& identity, uint8_t secret, Role role) {
    SharedKey key{.identity = identity};
    key.secret.fill(static_cast<std::byte>(secret));
    auto opened = Endpoint::open_key(role, std::move(key));
    EXPECT_TRUE(opened) << opened.error().to_string();
    return *opened;
  }
  // What comes of it, at both ends.
  void expect_refused() {
    const auto started = secure("");
    ASSERT_FALSE(started);
    EXPECT_EQ(started.error().number(), EACCES) << started.error().to_string();
    EXPECT_TRUE(run_until([&] { return server_end_.has_value(); }));
    EXPECT_EQ(secured_, 0);
    EXPECT_EQ(calls_, 0);
  }
};

TEST_F(ByKey, WhoHasTheKeyIsLetInAndTheCallsAreProtected) {
  ASSERT_TRUE(secure("")) << started_->error().to_string();
  EXPECT_EQ(secured_, 1);
  EXPECT_THAT(client_seen_.names, ElementsAre("tank"));
  const std::string secret = "what nobody else may read";
  const auto answer = call(Bytes(as_bytes(secret).begin(), as_bytes(secret).end()));
  ASSERT_TRUE(answer) << answer.error().to_string();
  EXPECT_EQ(as_text(*answer), secret);
  for (const std::string& seen : wire_->seen) EXPECT_THAT(seen, Not(HasSubstr("nobody else")));
}

TEST_F(ByKey, AnotherKeyIsRefused) {
  client_tls_ = of("tank", 2, Role::kClient);
  expect_refused();
  EXPECT_EQ(server_end_->number(), EACCES) << server_end_->to_string();
}

// And looks no different, so that nobody learns which names there are.
TEST_F(ByKey, AnotherIdentityIsRefusedAsAnotherKeyIs) {
  client_tls_ = of("tank", 2, Role::kClient);
  expect_refused();
  const std::string said = started_->error().to_string();
  started_.reset();
  client_tls_ = of("pond", 1, Role::kClient);
  expect_refused();
  EXPECT_EQ(started_->error().to_string(), said);
}

TEST_F(ByKey, ACertificateIsNoKey) {
  client_tls_ = open(Role::kClient, "client");
  const auto started = secure();
  ASSERT_FALSE(started);
  EXPECT_EQ(secured_, 0);
  EXPECT_EQ(calls_, 0);
}

// A server that only pretends to have the key shows some certificate instead.
TEST_F(ByKey, AServerWithACertificateInPlaceOfTheKeyIsNotBelieved) {
  server_tls_ = open(Role::kServer, "server");
  const auto started = secure("");
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().number(), EACCES) << started.error().to_string();
  EXPECT_EQ(calls_, 0);
}

TEST_F(ByKey, EachSessionHasKeysOfItsOwn) {
  ASSERT_TRUE(secure(""));
  const std::string first = wire_->seen[0];
  client_->close();
  started_.reset();
  ASSERT_TRUE(secure(""));
  EXPECT_NE(wire_->seen[0], first);
}

}  // namespace
}  // namespace pnfsrdma::rpc_tls
