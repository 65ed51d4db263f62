// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "server/console/page.h"
#include "tests/doubles/manual_clock.h"
#include "tests/unit/console/api_world.h"

namespace pnfsrdma::console::testing {
namespace {

const Json kToken{{"name", "scraper"}, {"role", "viewer"}};

HttpResponse make_token(ApiWorld& world, const std::string& key, const Json& body = kToken) {
  return world.send(ApiWorld::with(world.request("POST", "/api/v1/tokens", body), "idempotency-key", key));
}

size_t tokens(ApiWorld& world) {
  return ApiWorld::json_of(world.send("GET", "/api/v1/tokens"))["items"].size();
}

TEST(RepeatedRequests, AreDoneOnceAndAnsweredAlike) {
  ApiWorld world;
  const auto first = make_token(world, "one");
  const auto again = make_token(world, "one");
  EXPECT_EQ(first.status, 201);
  EXPECT_EQ(again.status, 201);
  EXPECT_EQ(again.body, first.body);
  EXPECT_EQ(ApiWorld::header_of(again, "Idempotency-Replayed"), "true");
  EXPECT_EQ(tokens(world), 1u);
  const Json audit = ApiWorld::json_of(world.send("GET", "/api/v1/audit"));
  EXPECT_EQ(audit["items"].size(), 1u) << "what was not done again is not in the audit log again";
  EXPECT_EQ(make_token(world, "two").status, 201);
  EXPECT_EQ(tokens(world), 2u);
  EXPECT_NE(world.send("POST", "/api/v1/tokens", kToken).body, first.body);
}

TEST(RepeatedRequests, AKeyIsOfOneRequestAlone) {
  ApiWorld world;
  EXPECT_EQ(make_token(world, "one").status, 201);
  EXPECT_EQ(make_token(world, "one", {{"name", "another"}, {"role", "viewer"}}).status, 422);
  EXPECT_EQ(tokens(world), 1u);
  // A refusal is an answer, too.
  const auto refused = make_token(world, "bad", {{"name", ""}, {"role", "viewer"}});
  EXPECT_EQ(refused.status, 422);
}

TEST(RepeatedRequests, TheFirstMustHaveBeenAnswered) {
  ApiWorld world;
  RepeatedRequests repeats(world.clock);
  EXPECT_FALSE(repeats.begin("key", "body")->has_value());
  EXPECT_EQ(repeats.begin("key", "body").error().name, "busy");
  repeats.end("key", HttpResponse{.status = 201, .body = "made"});
  EXPECT_EQ((*repeats.begin("key", "body"))->body, "made");
  EXPECT_FALSE(repeats.begin("passing", "body")->has_value());
  repeats.end("passing", refuse("busy", "later"));
  EXPECT_FALSE(repeats.begin("passing", "body")->has_value()) << "it may be tried again";
}

// Its handler never came back with one.
TEST(RepeatedRequests, AKeyWithoutAnAnswerIsForgottenLikeTheOthers) {
  ManualClock clock;
  RepeatedRequests repeats(clock);
  EXPECT_FALSE(repeats.begin("key", "body")->has_value());
  clock.advance(RepeatedRequests::kKept + Milliseconds(1));
  EXPECT_FALSE(repeats.begin("key", "body")->has_value());
}

TEST(Cursors, AreOpaqueAndOnlyOurs) {
  const std::string sealed = seal_cursor("admin");
  EXPECT_EQ(sealed.find("admin"), std::string::npos);
  EXPECT_EQ(unseal_cursor(sealed), "admin");
  for (const std::string& wrong :
       {std::string("x"), std::string("admin"), sealed + "A", sealed.substr(1), std::string()})
    EXPECT_EQ(unseal_cursor(wrong), std::nullopt) << wrong;
  ApiWorld world;
  for (const char* list :
       {"/users", "/tokens", "/bricks", "/exports", "/layouts", "/clients", "/jobs", "/audit", "/events"}) {
    const auto refused = world.send("GET", std::string("/api/v1") + list + "?cursor=00000000000000000001");
    EXPECT_EQ(refused.status, 400) << list;
    EXPECT_EQ(ApiWorld::json_of(refused)["type"], "/api/v1/problems/bad-request");
  }
}

TEST(KnownAnswers, AreNotSentAgain) {
  ApiWorld world;
  const auto first = world.send("GET", "/api/v1/exports");
  const std::string etag = ApiWorld::header_of(first, "ETag");
  ASSERT_FALSE(etag.empty());
  const auto ask = [&](const std::string& known) {
    return world.send(ApiWorld::with(world.request("GET", "/api/v1/exports"), "if-none-match", known));
  };
  EXPECT_EQ(ask(etag).status, 304);
  EXPECT_EQ(ask(etag).body, "");
  EXPECT_EQ(ApiWorld::header_of(ask(etag), "ETag"), etag);
  EXPECT_EQ(ask("\"other\", W/" + etag).status, 304);
  EXPECT_EQ(ask("\"other\"").status, 200);
  EXPECT_EQ(world.send("POST", "/api/v1/exports", {{"path", "/new"}}).status, 201);
  EXPECT_EQ(ask(etag).status, 200) << "it has changed";
}

// What a brick counts is no reason to refuse a change of it.
TEST(KnownAnswers, AChangeIsMeantForWhatCanBeChanged) {
  ApiWorld world;
  const std::string path = "/api/v1/bricks/" + kBrickId;
  const std::string etag = ApiWorld::header_of(world.send("GET", path), "ETag");
  world.administration.brick.counters.rdma_reads += 1;
  const auto changed =
      world.send(ApiWorld::with(world.request("PATCH", path, {{"draining", true}}), "if-match", etag));
  EXPECT_EQ(changed.status, 200) << changed.body;
  const auto again =
      world.send(ApiWorld::with(world.request("PATCH", path, {{"draining", false}}), "if-match", etag));
  EXPECT_EQ(again.status, 412);
}

}  // namespace
}  // namespace pnfsrdma::console::testing
