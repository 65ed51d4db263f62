// SPDX-License-Identifier: Apache-2.0
#include "cli/cluster/invitation.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <future>

#include "cli/cluster/host_files.h"
#include "shared/base/result.h"

namespace pnfsrdma::cli {
namespace {

TEST(InvitationToken, IsReadAsItWasShown) {
  const InvitationToken token{
      .door = "https://192.0.2.1:8444", .authority = "ab", .secret = "cd", .guest = Guest::kWitness};
  const auto read = InvitationToken::parse(token.text());
  ASSERT_TRUE(read);
  EXPECT_EQ(read->door, token.door);
  EXPECT_EQ(read->authority, token.authority);
  EXPECT_EQ(read->secret, token.secret);
  EXPECT_EQ(read->guest, Guest::kWitness);
  for (const Guest guest : {Guest::kServer, Guest::kBrick}) {
    const InvitationToken other{
        .door = "https://192.0.2.1:8444", .authority = "ab", .secret = "cd", .guest = guest};
    EXPECT_EQ(InvitationToken::parse(other.text())->guest, guest);
  }
  for (const std::string& text : {std::string(), std::string("e30"), token.text().substr(0, 40),
                                  token.text() + "=", std::string("not a token")})
    EXPECT_FALSE(InvitationToken::parse(text)) << text;
}

// A member that waits, with files of its own.
class Invitation : public ::testing::Test {
 protected:
  Invitation() {
    char name[] = "/tmp/pnfsrdma-invitation.XXXXXX";
    folder = ::mkdtemp(name);
    const std::string key = *make_private_key();
    EXPECT_TRUE(write_host_file({.path = folder + "/key", .content = key, .mode = 0600}));
    EXPECT_TRUE(write_host_file(
        {.path = folder + "/pem", .content = *sign(authority, *public_key_of(key), "a", "127.0.0.1")}));
    token.authority = *fingerprint_of(authority.certificate);
  }
  ~Invitation() override { std::filesystem::remove_all(folder); }

  void invite(Milliseconds patience = std::chrono::seconds(60)) {
    std::promise<uint16_t> opened;
    came = std::async(std::launch::async, [this, &opened, patience] {
      return receive_one(
          {"127.0.0.1", 0, folder + "/pem", folder + "/key"}, token, patience,
          [this](const JoinRequest& request) -> Outcome<JoinAnswer> {
            if (request.name == "a") return refuse(ExitCode::kConflict, "there is one already");
            return JoinAnswer{.authority_key = "secret",
                              .certificates = request.public_keys,
                              .endpoints = {"https://a:1"},
                              .prefix = "/pnfsrdma"};
          },
          [&opened](uint16_t port) { opened.set_value(port); }, authority.certificate);
    });
    token.door = "https://127.0.0.1:" + std::to_string(opened.get_future().get());
  }
  Outcome<JoinAnswer> ask(const InvitationToken& with, const std::string& name = "b") {
    TRY_ASSIGN(const std::string certificate, authority_of(with));
    EXPECT_EQ(certificate, authority.certificate);
    return ask_to_join(with, certificate, {.name = name, .address = "127.0.0.2", .public_keys = {"k"}});
  }

  std::string folder;
  const CertificatePair authority = *make_authority();
  InvitationToken token{.door = {}, .authority = {}, .secret = "open", .guest = Guest::kServer};
  std::future<Outcome<JoinRequest>> came;
};

TEST_F(Invitation, IsGoodOnce) {
  invite();
  const auto answer = ask(token);
  ASSERT_TRUE(answer) << answer.error().title;
  EXPECT_EQ(answer->authority_key, "secret");
  EXPECT_EQ(answer->certificates, std::vector<std::string>{"k"});
  const auto who = came.get();
  ASSERT_TRUE(who);
  EXPECT_EQ(who->name, "b");
  EXPECT_EQ(who->address, "127.0.0.2");
  const auto again = ask(token);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, ExitCode::kUnreachable);
}

TEST_F(Invitation, WhoHasAnotherSecretIsNotLetInAndTheDoorStaysOpen) {
  invite();
  InvitationToken wrong = token;
  for (const char* secret : {"", "shut", "opens"}) {
    wrong.secret = secret;
    const auto answer = ask(wrong);
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code, ExitCode::kNotPermitted);
  }
  EXPECT_TRUE(ask(token));
}

TEST_F(Invitation, TheSecretIsToldToNobodyElse) {
  invite();
  InvitationToken wrong = token;
  wrong.authority = *fingerprint_of(make_authority()->certificate);
  const auto answer = authority_of(wrong);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ExitCode::kNotPermitted);
  // Somebody who shows the right authority and has none of its keys.
  const auto told =
      ask_to_join(token, make_authority()->certificate, {.name = "b", .address = "b", .public_keys = {"k"}});
  ASSERT_FALSE(told);
  EXPECT_EQ(told.error().code, ExitCode::kUnreachable);
  EXPECT_TRUE(ask(token));
}

TEST_F(Invitation, WhatTheMemberRefusesIsTold) {
  invite();
  const auto answer = ask(token, "a");
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().title, "there is one already");
  EXPECT_TRUE(ask(token));
}

TEST_F(Invitation, EndsWhenNobodyComes) {
  invite(Milliseconds(50));
  EXPECT_FALSE(came.get());
}

}  // namespace
}  // namespace pnfsrdma::cli
