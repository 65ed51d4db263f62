// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <fstream>

#include "server/console/authenticate.h"
#include "tests/unit/console/api_world.h"

namespace pnfsrdma::console::testing {
namespace {

constexpr const char* kPassword = "correct horse";

struct Session : ::testing::Test {
  ApiWorld world;

  std::string token() {
    std::string text;
    std::ifstream(world.setup.path()) >> text;
    return text;
  }
  HttpRequest remote(const std::string& method, const std::string& path, const Json& body = Json()) {
    return ApiWorld::from(world.request(method, "/api/v1" + path, body), "192.0.2.7");
  }
  void set_password() {
    ASSERT_EQ(world.send("PUT", "/api/v1/users/admin", {{"role", "admin"}, {"password", kPassword}}).status,
              201);
  }
  HttpResponse login(const std::string& password = kPassword, const std::string& user = "admin") {
    return world.send(remote("POST", "/session", {{"user", user}, {"password", password}}));
  }
  static std::string cookie(const HttpResponse& response) {
    const std::string header = ApiWorld::header_of(response, "Set-Cookie");
    return header.substr(0, header.find(';'));
  }
};

TEST_F(Session, TheFirstPasswordIsSetWithTheTokenFromThisHostOnly) {
  const Json body{{"token", token()}, {"password", kPassword}};
  EXPECT_EQ(world.send(remote("POST", "/setup", body)).status, 403);
  HttpRequest here = ApiWorld::from(world.request("POST", "/api/v1/setup", body), "127.0.0.1", true);
  const auto made = world.send(here);
  ASSERT_EQ(made.status, 201) << made.body;
  EXPECT_EQ(ApiWorld::json_of(made)["role"], "admin");
  EXPECT_EQ(world.passwords_set, 1);
  EXPECT_FALSE(std::filesystem::exists(world.setup.path()));
  EXPECT_EQ(world.send(here).status, 409);
  EXPECT_FALSE(ApiWorld::json_of(world.send("GET", "/api/v1/setup"))["needed"]);
  // It is a login, too.
  EXPECT_FALSE(ApiWorld::json_of(world.send("GET", "/api/v1/users/admin"))["last_login"].is_null());
  EXPECT_EQ(login().status, 201);
}

TEST_F(Session, AWrongTokenIsCalledThatAndWhereTheRightOneIsIsSaid) {
  const Json body{{"token", "nonsense"}, {"password", kPassword}};
  const auto refused =
      world.send(ApiWorld::from(world.request("POST", "/api/v1/setup", body), "127.0.0.1", true));
  EXPECT_EQ(refused.status, 403);
  EXPECT_EQ(ApiWorld::json_of(refused)["detail"], "The one-time token is wrong.");
  EXPECT_NE(refused.body.find(world.setup.path()), std::string::npos);
}

TEST_F(Session, WhereTheTokenIsIsToldOnThisHostAlone) {
  EXPECT_EQ(ApiWorld::json_of(world.send("GET", "/api/v1/setup"))["token_file"], world.setup.path());
  EXPECT_TRUE(ApiWorld::json_of(world.send(remote("GET", "/setup")))["token_file"].is_null());
}

TEST_F(Session, ACookieNeedsItsCsrfTokenForChanges) {
  set_password();
  const auto opened = login();
  ASSERT_EQ(opened.status, 201);
  const std::string header = ApiWorld::header_of(opened, "Set-Cookie");
  for (const char* attribute : {"HttpOnly", "Secure", "SameSite=Strict"})
    EXPECT_NE(header.find(attribute), std::string::npos) << attribute;
  const HttpRequest get = ApiWorld::with(remote("GET", "/session"), "cookie", "a=b; " + cookie(opened));
  EXPECT_EQ(world.send(get).status, 200);
  const HttpRequest change =
      ApiWorld::with(remote("POST", "/exports", {{"path", "/x"}}), "cookie", cookie(opened));
  const auto refused = world.send(change);
  EXPECT_EQ(refused.status, 403);
  EXPECT_NE(refused.body.find("/problems/csrf"), std::string::npos);
  const std::string csrf = ApiWorld::json_of(opened)["csrf_token"];
  EXPECT_EQ(world.send(ApiWorld::with(change, "x-csrf-token", csrf + "x")).status, 403);
  EXPECT_EQ(world.send(ApiWorld::with(change, "x-csrf-token", csrf)).status, 201);
}

TEST_F(Session, LoggingOutEndsIt) {
  set_password();
  const auto opened = login();
  HttpRequest out = ApiWorld::with(remote("DELETE", "/session"), "cookie", cookie(opened));
  out = ApiWorld::with(out, "x-csrf-token", ApiWorld::json_of(opened)["csrf_token"]);
  EXPECT_EQ(world.send(out).status, 204);
  EXPECT_EQ(world.send(ApiWorld::with(remote("GET", "/session"), "cookie", cookie(opened))).status, 401);
}

TEST_F(Session, WrongPasswordsAreCountedAndAuditedAndTellNothing) {
  set_password();
  const std::string wrong = login("nonsense").body;
  EXPECT_EQ(login("nonsense", "nobody").body, wrong);
  int refused = 0;
  HttpResponse last;
  for (int i = 0; i < 12 && refused == 0; ++i) {
    last = login("nonsense");
    if (last.status == 429) ++refused;
  }
  EXPECT_EQ(refused, 1);
  EXPECT_GT(std::stoi(ApiWorld::header_of(last, "Retry-After")), 0);
  // Not even the right one, until the time is over.
  EXPECT_EQ(login().status, 429);
  const Json audit = ApiWorld::json_of(world.send("GET", "/api/v1/audit"));
  EXPECT_EQ(audit["items"][0]["status"], 401);
  EXPECT_EQ(audit["items"][0]["origin"], "192.0.2.7");
  EXPECT_FALSE(audit["items"][0]["after"].contains("password"));
}

TEST_F(Session, ANewPasswordEndsTheOtherSessions) {
  set_password();
  const auto first = login();
  const auto second = login();
  HttpRequest change =
      remote("PUT", "/session/password", {{"old_password", kPassword}, {"new_password", "another long one"}});
  change = ApiWorld::with(change, "cookie", cookie(second));
  change = ApiWorld::with(change, "x-csrf-token", ApiWorld::json_of(second)["csrf_token"]);
  EXPECT_EQ(world.send(change).status, 204);
  EXPECT_EQ(world.send(ApiWorld::with(remote("GET", "/session"), "cookie", cookie(first))).status, 401);
  EXPECT_EQ(world.send(ApiWorld::with(remote("GET", "/session"), "cookie", cookie(second))).status, 200);
  EXPECT_EQ(login("another long one").status, 201);
}

TEST_F(Session, ATokenIsShownOnceKeptAsADigestAndDiesWithItsRemoval) {
  const auto made =
      ApiWorld::json_of(world.send("POST", "/api/v1/tokens", {{"name", "ci"}, {"role", "viewer"}}));
  const std::string secret = made["secret"];
  for (const auto& [key, record] : world.records.records)
    EXPECT_EQ(record.find(secret), std::string::npos) << key;
  const HttpRequest get = ApiWorld::with(remote("GET", "/version"), "authorization", "Bearer " + secret);
  EXPECT_EQ(world.send(get).status, 200);
  EXPECT_EQ(world.send("GET", "/api/v1/tokens").body.find(secret), std::string::npos);
  const std::string id = made["token"]["id"];
  EXPECT_EQ(world.send("DELETE", "/api/v1/tokens/" + id).status, 204);
  EXPECT_EQ(world.send(get).status, 401);
}

TEST_F(Session, ATokenDoesNoMoreThanItsUserMayNow) {
  set_password();
  ASSERT_EQ(world.send("PUT", "/api/v1/users/op", {{"role", "operator"}, {"password", kPassword}}).status,
            201);
  const auto opened = login(kPassword, "op");
  HttpRequest make = ApiWorld::with(remote("POST", "/tokens", {{"name", "t"}, {"role", "operator"}}),
                                    "cookie", cookie(opened));
  make = ApiWorld::with(make, "x-csrf-token", ApiWorld::json_of(opened)["csrf_token"]);
  const std::string secret = ApiWorld::json_of(world.send(make))["secret"];
  const HttpRequest revoke =
      ApiWorld::with(remote("DELETE", "/layouts?inode=7"), "authorization", "Bearer " + secret);
  EXPECT_EQ(world.send(revoke).status, 200);
  HttpRequest demote = world.request("PUT", "/api/v1/users/op", {{"role", "viewer"}});
  EXPECT_EQ(world.send(ApiWorld::with(demote, "if-match", "*")).status, 200);
  EXPECT_EQ(world.send(revoke).status, 403);
  EXPECT_EQ(world.send("DELETE", "/api/v1/users/op").status, 204);
  EXPECT_EQ(world.send(revoke).status, 401);
}

TEST_F(Session, ATokenThatEndsMakesNoneThatOutlivesIt) {
  const auto made = ApiWorld::json_of(
      world.send("POST", "/api/v1/tokens", {{"name", "ci"}, {"role", "admin"}, {"expires_days", 1}}));
  const std::string bearer = "Bearer " + made["secret"].get<std::string>();
  const auto make = [&](Json body) {
    return ApiWorld::json_of(
        world.send(ApiWorld::with(remote("POST", "/tokens", body), "authorization", bearer)))["token"];
  };
  EXPECT_EQ(make({{"name", "heir"}, {"role", "admin"}})["expires"], made["token"]["expires"]);
  EXPECT_EQ(make({{"name", "heir"}, {"role", "admin"}, {"expires_days", 30}})["expires"],
            made["token"]["expires"]);
}

TEST_F(Session, ATokenOfAUserRemovedMeanwhileIsNotMade) {
  const Token token{.id = "0123456789abcdef", .name = "t", .user = "eve", .role = Role::kAdmin};
  const auto added = world.accounts.add(token);
  ASSERT_FALSE(added);
  EXPECT_EQ(added.error().name, "not-logged-in");
  EXPECT_TRUE(world.accounts.tokens().empty());
}

TEST_F(Session, NobodyIsCalledAsWhoComesByTheSocket) {
  const Json body{{"role", "viewer"}, {"password", kPassword}};
  EXPECT_EQ(world.send("PUT", "/api/v1/users/root", body).status, 409);
}

TEST_F(Session, APasswordIsNotChangedOverANewerOne) {
  set_password();
  const std::string seen = world.accounts.user("admin")->password_hash;
  ASSERT_TRUE(world.accounts.set_password("admin", seen, "newer"));
  EXPECT_EQ(world.accounts.set_password("admin", seen, "mine").error().name, "conflict");
  EXPECT_EQ(world.accounts.user("admin")->password_hash, "newer");
}

// Whoever guesses from one address does not lock the user out everywhere.
TEST_F(Session, TheRightPasswordIsTakenFromAnAddressThatHasNotFailed) {
  set_password();
  const auto status_from = [&](const std::string& address, const std::string& password) {
    const Json body{{"user", "admin"}, {"password", password}};
    return world.send(ApiWorld::from(world.request("POST", "/api/v1/session", body), address)).status;
  };
  for (int i = 0; i < 10; ++i) EXPECT_EQ(status_from("198.51.100.9", "nonsense"), 401);
  EXPECT_EQ(status_from("198.51.100.9", kPassword), 429);
  // A new address has one attempt for a user whom others guess at.
  for (int i = 0; i < 5; ++i) EXPECT_EQ(status_from("198.51.100.10", "nonsense"), i == 0 ? 401 : 429);
  EXPECT_EQ(status_from("192.0.2.7", kPassword), 201);
}

// A host takes another address of its network whenever it likes; another network is somebody else.
TEST_F(Session, WrongPasswordsFromOneNetworkAreCountedTogether) {
  set_password();
  const auto status_from = [&](const std::string& address, int user) {
    const Json body{{"user", "user" + std::to_string(user)}, {"password", "nonsense"}};
    return world.send(ApiWorld::from(world.request("POST", "/api/v1/session", body), address)).status;
  };
  for (int i = 0; i < 10; ++i) EXPECT_EQ(status_from("2001:db8:0:7::" + std::to_string(i + 1), i), 401);
  EXPECT_EQ(status_from("2001:db8:0:7:ffff::1", 10), 429);
  EXPECT_EQ(status_from("2001:db8:0:8::1", 10), 401);
  for (int i = 0; i < 12; ++i) EXPECT_EQ(status_from("198.51.100." + std::to_string(i), 20 + i), 401);
}

TEST(Network, IsAnIpv4AddressOrTheFirstHalfOfAnIpv6One) {
  EXPECT_EQ(network_of("192.0.2.7"), "192.0.2.7");
  EXPECT_EQ(network_of("2001:db8::1:2:3:4"), "2001:db8::/64");
  EXPECT_EQ(network_of("fe80::1%eth0"), "fe80::/64");
  EXPECT_EQ(network_of("local"), "local");
}

// Who logs in while the password changes has a session of the new password, or none.
TEST_F(Session, ALoginThatMeetsANewPasswordDoesNotSurviveIt) {
  set_password();
  const std::string passwords[] = {kPassword, "another long one"};
  for (int round = 0; round < 60; ++round) {
    HttpResponse opened;
    std::thread entering([&] { opened = login(passwords[round % 2]); });
    HttpRequest change = world.request("PUT", "/api/v1/users/admin",
                                       {{"role", "admin"}, {"password", passwords[(round + 1) % 2]}});
    EXPECT_EQ(world.send(ApiWorld::with(change, "if-match", "*")).status, 200);
    entering.join();
    world.attempts.succeeded("address 192.0.2.7");
    world.attempts.succeeded("user admin");
    if (opened.status != 201) continue;
    EXPECT_EQ(world.send(ApiWorld::with(remote("GET", "/session"), "cookie", cookie(opened))).status, 401)
        << "round " << round;
  }
}

TEST_F(Session, WhatTheStoreDoesNotTakeIsNotThere) {
  world.records.fails = true;
  EXPECT_EQ(world.send("PUT", "/api/v1/users/admin", {{"role", "admin"}, {"password", kPassword}}).status,
            503);
  world.records.fails = false;
  EXPECT_EQ(world.send("GET", "/api/v1/users/admin").status, 404);
}

TEST_F(Session, UsersAndTokensAreThereAfterARestart) {
  set_password();
  Accounts again(world.loop, world.records, world.clock);
  ASSERT_TRUE(again.load());
  EXPECT_TRUE(again.password_set());
  world.records.records["user/admin"] = "{\"version\":2}";
  Accounts damaged(world.loop, world.records, world.clock);
  EXPECT_EQ(damaged.load().error().number(), EUCLEAN);
}

TEST_F(Session, OnlyRootAndOurselvesNeedNoLogin) {
  HttpRequest request = world.request("GET", "/api/v1/version");
  EXPECT_EQ(world.send(request).status, 200);
  request.peer.uid = 12345;
  EXPECT_EQ(world.send(request).status, 401);
  request.peer.uid.reset();
  EXPECT_EQ(world.send(request).status, 401);
}

}  // namespace
}  // namespace pnfsrdma::console::testing
