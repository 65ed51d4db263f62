// SPDX-License-Identifier: Apache-2.0
#include "cli/api/api_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "cli/api/problem.h"
#include "cli/api/server_url.h"
#include "cli/api/token.h"
#include "cli/output/json_member.h"
#include "cli/resource/lookup.h"
#include "tests/unit/cli/api_server.h"

namespace pnfsrdma::cli {
namespace {

using nlohmann::json;
using testing::HasSubstr;

TEST(Encoded, OnlyUnreservedCharactersStay) {
  EXPECT_EQ(encoded("a b/c?d&e%"), "a%20b%2Fc%3Fd%26e%25");
  EXPECT_EQ(encoded("A-Z_0.9~"), "A-Z_0.9~");
  EXPECT_EQ(encoded("ü"), "%C3%BC");
}

TEST(ServerUrl, HostAndPort) {
  EXPECT_EQ(parse_server("https://mds.example:9443/")->port, 9443);
  EXPECT_EQ(parse_server("mds.example")->host, "mds.example");
  EXPECT_EQ(parse_server("mds.example")->port, 8443);
  EXPECT_EQ(parse_server("https://[::1]:77")->host, "::1");
  EXPECT_EQ(parse_server("https://[::1]:77")->port, 77);
  EXPECT_FALSE(parse_server("http://127.0.0.1:80")->tls);
}

TEST(ServerUrl, ATokenNeverGoesOverANetworkInTheClear) {
  EXPECT_FALSE(parse_server("http://mds.example:80"));
  for (const char* text : {"", "https://", "ftp://x", "https://x:0", "https://x:70000", "https://x:1y",
                           "https://x/api", "https://u@x", "https://[::1", "https://[::1]7"}) {
    const auto parsed = parse_server(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code, ExitCode::kUsage);
  }
}

TEST(Problem, TitleDetailAndFixAreTheServers) {
  const Failure failure = failure_of(
      409,
      R"({"type":"/problems/brick-in-use","title":"In use","status":409,"detail":"3 files","fix":"move them"})");
  EXPECT_EQ(failure.code, ExitCode::kConflict);
  EXPECT_EQ(failure.title, "In use");
  EXPECT_EQ(failure.detail, "3 files");
  EXPECT_EQ(failure.fix, "move them");
}

TEST(Problem, RefusedMembersAreNamed) {
  const Failure failure =
      failure_of(422, R"({"title":"Invalid","errors":[{"pointer":"/path","detail":"must be absolute"}]})");
  EXPECT_THAT(failure.detail, HasSubstr("/path: must be absolute"));
}

TEST(Problem, OneRefusedMemberIsNotNamedTwice) {
  const Failure failure = failure_of(
      422,
      R"({"title":"Invalid","detail":"/path is wrong","errors":[{"pointer":"/path","detail":"is wrong"}]})");
  EXPECT_EQ(failure.detail, "/path is wrong");
}

TEST(Problem, WhoKeepsABrickIsSaid) {
  const Failure failure = failure_of(
      409,
      R"({"title":"In use","detail":"files have data on it","holders":{"files":3,"bytes":4096,"exports":["/","/a"]}})");
  EXPECT_EQ(failure.detail, "files have data on it (3 files, 4.0 KiB, exported as /, /a)");
}

TEST(Problem, AnythingElseThatAnswersIsNotTakenForTheConsole) {
  for (const char* body : {"", "<html>", "[]", "{}", "{\"title\":5}"}) {
    EXPECT_THAT(failure_of(404, body).title, HasSubstr("HTTP 404")) << body;
    EXPECT_EQ(failure_of(404, body).code, ExitCode::kNotFound);
  }
  EXPECT_EQ(failure_of(401, "").code, ExitCode::kNotPermitted);
  EXPECT_EQ(failure_of(403, "").code, ExitCode::kNotPermitted);
  EXPECT_EQ(failure_of(412, "").code, ExitCode::kConflict);
  EXPECT_EQ(failure_of(500, "").code, ExitCode::kFailed);
}

class TokenFile : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/pnfsrdma-token-XXXXXX";
    const int fd = ::mkstemp(name);
    ASSERT_GE(fd, 0);
    ::close(fd);
    path = name;
    std::ofstream(path) << "secret \nsecond line\n";
  }
  void TearDown() override { ::unlink(path.c_str()); }
  std::string path;
};

TEST_F(TokenFile, TheFirstLineIsTheToken) {
  EXPECT_EQ(find_token({.token_file = path}).value(), "secret");
}

TEST_F(TokenFile, OneThatOthersMayReadIsRefused) {
  ::chmod(path.c_str(), 0644);
  const auto token = find_token({.token_file = path});
  ASSERT_FALSE(token);
  EXPECT_EQ(token.error().code, ExitCode::kNotPermitted);
  EXPECT_EQ(token.error().fix, "chmod 600 " + path);
}

TEST_F(TokenFile, TheEnvironmentStandsBehindTheOption) {
  ::setenv("PNFSRDMA_TOKEN_FILE", path.c_str(), 1);
  EXPECT_EQ(find_token({}).value(), "secret");
  ::unsetenv("PNFSRDMA_TOKEN_FILE");
  ::setenv("PNFSRDMA_TOKEN", "direct", 1);
  EXPECT_EQ(find_token({}).value(), "direct");
  ::unsetenv("PNFSRDMA_TOKEN");
  EXPECT_EQ(find_token({}).value(), "");
  EXPECT_EQ(find_token({.token_file = "/no/such"}).error().code, ExitCode::kNotFound);
}

TEST(ApiClient, AListIsAllItsPages) {
  ApiServer server;
  server.http.Get("/api/v1/bricks", [](const httplib::Request& request, httplib::Response& response) {
    const bool second = request.get_param_value("cursor") == "next/1";
    response.set_content(second ? R"({"items":[{"id":"c"}],"next_cursor":null})"
                                : R"({"items":[{"id":"a"},{"id":"b"}],"next_cursor":"next/1"})",
                         "application/json");
  });
  server.start();
  ApiClient client = server.client();
  EXPECT_EQ(client.list("/bricks").value().size(), 3u);
  EXPECT_EQ(client.list("/bricks", {}, 2).value().size(), 2u);
  EXPECT_THAT(server.asked().at(1).target, HasSubstr("cursor=next%2F1"));
}

// Of events: the next page is of what has not happened yet.
TEST(ApiClient, AListWhoseNextPageIsEmptyEnds) {
  ApiServer server;
  server.http.Get("/api/v1/events", [](const httplib::Request& request, httplib::Response& response) {
    const bool second = request.get_param_value("cursor") == "7";
    response.set_content(
        second ? R"({"items":[],"next_cursor":"7"})" : R"({"items":[{"sequence":7}],"next_cursor":"7"})",
        "application/json");
  });
  server.start();
  EXPECT_EQ(server.client().list("/events", {}, 100).value().size(), 1u);
  EXPECT_EQ(server.asked().size(), 2u);
}

TEST(ApiClient, AnEditIsMadeOnWhatWasSeen) {
  ApiServer server;
  server.answer("/exports/1", R"({"id":1})", 200, "\"7\"");
  server.http.Put("/api/v1/exports/1", [](const httplib::Request& request, httplib::Response& response) {
    response.status = request.get_header_value("If-Match") == "\"7\"" ? 200 : 412;
    EXPECT_EQ(request.body, R"({"read_only":true})");
    EXPECT_EQ(request.get_header_value("Content-Type"), "application/json");
    response.set_content("{}", "application/json");
  });
  server.start();
  ApiClient client = server.client();
  const auto seen = client.get("/exports/1");
  ASSERT_TRUE(seen);
  EXPECT_EQ(seen->etag, "\"7\"");
  EXPECT_TRUE(client.put("/exports/1", {{"read_only", true}}, seen->etag));
  const auto stale = client.put("/exports/1", {{"read_only", true}}, "\"6\"");
  ASSERT_FALSE(stale);
  EXPECT_EQ(stale.error().code, ExitCode::kConflict);
}

TEST(ApiClient, TheTokenIsShown) {
  ::setenv("PNFSRDMA_TOKEN", "abc", 1);
  ApiServer server;
  server.answer("/health", "{}");
  server.start();
  ApiClient client = server.client();
  ::unsetenv("PNFSRDMA_TOKEN");
  EXPECT_TRUE(client.get("/health"));
  EXPECT_EQ(server.asked().at(0).authorization, "Bearer abc");
}

TEST(ApiClient, NobodyThereIsUnreachable) {
  auto socket = ApiClient::make({.socket = "/tmp/pnfsrdma-no-such.sock"});
  ASSERT_TRUE(socket);
  EXPECT_EQ(socket->get("/health").error().code, ExitCode::kUnreachable);
  auto network = ApiClient::make({.server = "http://127.0.0.1:1"});
  ASSERT_TRUE(network);
  EXPECT_EQ(network->get("/health").error().code, ExitCode::kUnreachable);
  EXPECT_EQ(ApiClient::make({.server = "https://x", .ca = "/no/such.pem"}).error().code, ExitCode::kNotFound);
}

TEST(ApiClient, AnswersThatAreNoJsonAreRefused) {
  ApiServer server;
  server.answer("/health", "<html>");
  server.answer("/bricks", "[]");
  server.start();
  ApiClient client = server.client();
  EXPECT_FALSE(client.get("/health"));
  EXPECT_FALSE(client.list("/bricks"));
}

TEST(Lookup, ByIdNameOrBeginningOfTheId) {
  ApiServer server;
  server.answer("/clients", R"({"items":[{"id":"00000000000000a1","name":"host1","owner":"o"},
                                {"id":"00000000000000b2","name":"host2","owner":"p"},
                                {"id":"c300000000000000","name":"host2","owner":"q"}],"next_cursor":null})");
  server.answer("/exports", R"({"items":[{"id":1,"path":"/"},{"id":2,"path":"/a"}],"next_cursor":null})");
  server.start();
  ApiClient client = server.client();
  EXPECT_EQ((*find_client(client, "host1"))["owner"], "o");
  EXPECT_EQ((*find_client(client, "00000000000000b2"))["owner"], "p");
  EXPECT_EQ((*find_client(client, "c300"))["owner"], "q");
  const auto several = find_client(client, "host2");
  EXPECT_EQ(several.error().code, ExitCode::kUsage);
  EXPECT_THAT(several.error().detail, HasSubstr("c300000000000000"));
  EXPECT_EQ(find_client(client, "0000").error().code, ExitCode::kUsage);
  EXPECT_EQ((*find_client(client, "c3"))["owner"], "q");
  EXPECT_EQ((*find_export(client, "/a"))["id"], 2);
  EXPECT_EQ((*find_export(client, "1"))["path"], "/");
}

TEST(Lookup, TheBeginningOfAnIdWillDoWhileOnlyOneBeginsSo) {
  ApiServer server;
  server.answer("/bricks", R"({"items":[{"id":"5e1f00","name":"rack 1","address":"unix:/run/a"},)"
                           R"({"id":"5e2000","name":"","address":"tcp:b:1"}]})");
  server.start();
  ApiClient client = server.client();
  EXPECT_EQ(text_at(find_brick(client, "5e1").value(), "/id"), "5e1f00");
  EXPECT_EQ(find_brick(client, "5e").error().code, ExitCode::kUsage);
  EXPECT_EQ(find_brick(client, "").error().code, ExitCode::kNotFound);
  EXPECT_EQ(text_at(find_brick(client, "/run/a").value(), "/id"), "5e1f00");
  EXPECT_EQ(text_at(find_brick(client, "rack 1").value(), "/id"), "5e1f00");
  EXPECT_EQ(text_at(find_brick(client, "b:1").value(), "/id"), "5e2000");
}

TEST(Lookup, WhatMayHaveBeenMeantIsNamed) {
  ApiServer server;
  server.answer("/users", R"({"items":[{"name":"margaret"},{"name":"eve"}]})");
  server.answer("/exports", R"({"items":[{"id":1,"path":"/projects"}]})");
  server.start();
  ApiClient client = server.client();
  EXPECT_EQ(find_user(client, "margret").error().fix, "did you mean margaret?");
  EXPECT_EQ(find_user(client, "zoe").error().fix, "pnfsrdma user list");
  EXPECT_EQ(find_export(client, "/project").error().fix, "did you mean /projects?");
}

TEST(Lookup, AWholeLayoutIdIsNeverTheBeginningOfAnother) {
  ApiServer server;
  server.answer("/layouts", R"({"items":[{"id":"00000000000000ab-12"},{"id":"10000000000000ab-12"}]})");
  server.start();
  ApiClient client = server.client();
  EXPECT_EQ(find_layout(client, "00000000000000ab-1").value(), "00000000000000ab-1");
  EXPECT_EQ(find_layout(client, "10").value(), "10000000000000ab-12");
  EXPECT_EQ(find_layout(client, "2").error().code, ExitCode::kNotFound);
}

TEST(BrickAddress, IsCompletedAsItIsTyped) {
  EXPECT_EQ(brick_address("/run/brick.sock"), "unix:/run/brick.sock");
  EXPECT_EQ(brick_address("unix:/run/brick.sock"), "unix:/run/brick.sock");
  EXPECT_EQ(brick_address("host:20050"), "tcp:host:20050");
  EXPECT_EQ(brick_address("tcp:host:20050"), "tcp:host:20050");
  EXPECT_EQ(brick_address("[::1]:20050"), "tcp:[::1]:20050");
  EXPECT_EQ(brick_address("5e1f"), "5e1f");
}

TEST(ApiClient, ANameThatDoesNotResolveIsCalledThat) {
  ApiClient client = ApiClient::make({.server = "https://no.such.host.invalid:8443"}).value();
  const auto answer = client.get("/version");
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ExitCode::kUnreachable);
  EXPECT_THAT(answer.error().title, HasSubstr("cannot be resolved"));
}

}  // namespace
}  // namespace pnfsrdma::cli
