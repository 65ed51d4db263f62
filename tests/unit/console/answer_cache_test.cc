// SPDX-License-Identifier: Apache-2.0
#include "server/console/answer_cache.h"

#include <gtest/gtest.h>

#include "tests/doubles/manual_clock.h"
#include "tests/unit/console/api_world.h"

namespace pnfsrdma::console::testing {
namespace {

TEST(AnswerCache, KnowsAnAnswerUntilItIsOldOrSomethingHappens) {
  ManualClock clock;
  AnswerCache cache(clock);
  const AnswerCache::Moment before{.events = 3, .changes = 1};
  EXPECT_FALSE(cache.find("a", before));
  cache.keep("a", before, {.body = "answer"});
  ASSERT_TRUE(cache.find("a", before));
  EXPECT_EQ(cache.find("a", before)->body, "answer");
  EXPECT_FALSE(cache.find("b", before));
  EXPECT_FALSE(cache.find("a", {.events = 4, .changes = 1}));
  // Made before the change, kept behind it.
  cache.keep("a", before, {.body = "answer"});
  EXPECT_FALSE(cache.find("a", {.events = 3, .changes = 2}));
  cache.keep("a", before, {.body = "answer"});
  clock.advance(AnswerCache::kFresh);
  EXPECT_FALSE(cache.find("a", before));
}

TEST(AnswerCache, KeepsNoMoreThanItMay) {
  ManualClock clock;
  AnswerCache cache(clock);
  cache.keep("large", {}, {.body = std::string(AnswerCache::kBytesMax + 1, ' ')});
  EXPECT_FALSE(cache.find("large", {}));
  for (size_t i = 0; i <= AnswerCache::kAnswersMax; ++i) cache.keep(std::to_string(i), {}, {.body = "x"});
  EXPECT_FALSE(cache.find("0", {}));
  EXPECT_TRUE(cache.find(std::to_string(AnswerCache::kAnswersMax), {}));
}

// However many ask at once, the loop and the brick are asked once.
TEST(SharedAnswers, OfABrickAreAskedOfItOnce) {
  ApiWorld world;
  const std::string path = "/api/v1/bricks/" + kBrickId + "/blocks";
  const std::string first = world.send("GET", path).body;
  for (int i = 0; i < 20; ++i) EXPECT_EQ(world.send("GET", path).body, first);
  // Another question, the same map.
  EXPECT_EQ(world.send("GET", path + "?limit=1").status, 200);
  EXPECT_EQ(world.administration.maps_asked, 1);
}

TEST(SharedAnswers, ShowWhatTheCallerHasJustChanged) {
  ApiWorld world;
  const std::string path = "/api/v1/exports/1";
  for (const bool read_only : {true, false, true, false, true}) {
    const auto before = world.send("GET", path);
    const HttpRequest change =
        ApiWorld::with(world.request("PUT", path, {{"path", "/"}, {"read_only", read_only}}), "if-match",
                       ApiWorld::header_of(before, "ETag"));
    ASSERT_EQ(world.send(change).status, 200);
    EXPECT_EQ(ApiWorld::json_of(world.send("GET", path))["read_only"], read_only);
    EXPECT_EQ(ApiWorld::json_of(world.send("GET", "/api/v1/exports"))["items"][0]["read_only"], read_only);
  }
}

TEST(SharedAnswers, AreGivenToNobodyWhoMayNotAsk) {
  ApiWorld world;
  const HttpRequest asked = world.request("GET", "/api/v1/layouts");
  EXPECT_EQ(world.send(asked).status, 200);
  EXPECT_EQ(world.send(ApiWorld::from(asked, "192.0.2.7")).status, 401);
  HttpRequest odd = asked;
  odd.query.emplace("nonsense", "1");
  EXPECT_EQ(world.send(odd).status, 422);
}

}  // namespace
}  // namespace pnfsrdma::console::testing
