// SPDX-License-Identifier: Apache-2.0
#include "server/console/event_log.h"

#include <gtest/gtest.h>

#include <functional>
#include <thread>

#include "server/console/event_stream.h"

namespace pnfsrdma::console {
namespace {

using Fields = std::vector<std::pair<std::string, std::string>>;

TEST(EventLog, TakesALineApart) {
  EXPECT_EQ(parse_fields("lease-expired client=0x7 opens=3"), (Fields{{"client", "0x7"}, {"opens", "3"}}));
  EXPECT_EQ(parse_fields("a what=\"two words\" b=1"), (Fields{{"what", "two words"}, {"b", "1"}}));
  EXPECT_EQ(parse_fields("a what=\"never closed"), (Fields{{"what", "never closed"}}));
  EXPECT_EQ(parse_fields("a loose words k=v ="), (Fields{{"k", "v"}, {"", ""}}));
  EXPECT_TRUE(parse_fields("name").empty());
  EXPECT_TRUE(parse_fields("").empty());
  EXPECT_EQ(parse_fields("a k="), (Fields{{"k", ""}}));
  EXPECT_EQ(parse_fields("a k=\""), (Fields{{"k", ""}}));
}

TEST(EventLog, KeepsTheNewestAndSaysWhereItBegins) {
  SystemClock clock;
  EventLog log(clock, 3);
  EXPECT_EQ(log.range().newest, 0u);
  for (int i = 0; i < 5; ++i) log.add(LogLevel::kInfo, "mds", "e" + std::to_string(i));
  EXPECT_EQ(log.range().oldest, 3u);
  EXPECT_EQ(log.range().newest, 5u);
  uint64_t seen = 0;
  const auto found = log.behind(3, {}, 1, seen);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].name, "e3");
  EXPECT_EQ(seen, 4u);
  EXPECT_EQ(log.behind(seen, {}, 10, seen).size(), 1u);
  EXPECT_EQ(seen, 5u);
}

TEST(EventLog, FiltersByLevelComponentAndName) {
  SystemClock clock;
  EventLog log(clock);
  log.add(LogLevel::kDebug, "mds", "a");
  log.add(LogLevel::kWarning, "mds", "b");
  log.add(LogLevel::kError, "console", "b");
  EXPECT_EQ(log.newest({.least = LogLevel::kWarning}, 10).size(), 2u);
  EXPECT_EQ(log.newest({.component = "mds"}, 10).size(), 2u);
  EXPECT_EQ(log.newest({.component = "console", .name = "b"}, 10).size(), 1u);
  // What is not wanted is not looked at again.
  uint64_t seen = 0;
  EXPECT_TRUE(log.behind(0, {.name = "none"}, 10, seen).empty());
  EXPECT_EQ(seen, 3u);
}

TEST(EventLog, WakesWhoWaits) {
  SystemClock clock;
  EventLog log(clock);
  std::thread adder([&] { log.add(LogLevel::kInfo, "mds", "now"); });
  EXPECT_TRUE(log.wait_behind(0, Milliseconds(10'000)));
  adder.join();
  EXPECT_FALSE(log.wait_behind(1, Milliseconds(1)));
  std::thread stopper([&] { log.stop(); });
  EXPECT_FALSE(log.wait_behind(1, Milliseconds(10'000)));
  stopper.join();
}

TEST(EventStream, SendsWhatComesInOrderAndSaysWhatWasLost) {
  SystemClock clock;
  EventLog log(clock, 2);
  for (int i = 0; i < 4; ++i) log.add(LogLevel::kInfo, "mds", "e" + std::to_string(i));
  EventStream stream{.events = log, .run = "r", .filter = {}, .after = 1, .allowed = [] { return true; }};
  std::string text;
  HttpSink sink{.write =
                    [&](std::string_view bytes) {
                      text += bytes;
                      return text.find("id: r:4") == std::string::npos;
                    },
                .stopping = [] { return false; }};
  stream.send(sink);
  EXPECT_NE(text.find("event: lost\ndata: {\"from\":2,\"to\":2}"), std::string::npos) << text;
  EXPECT_LT(text.find("id: r:3"), text.find("id: r:4"));
  EXPECT_EQ(text.find("id: r:1\n"), std::string::npos);
}

// A stream whose reader `may` read on, until it ends; `written` is called for each write. False: it went on
// for seconds.
bool ends(EventLog& log, bool may, const std::function<void()>& written) {
  EventStream stream{.events = log,
                     .run = "r",
                     .filter = {},
                     .after = 0,
                     .allowed = [may] { return may; },
                     .heartbeat = Milliseconds(50)};
  const auto begun = std::chrono::steady_clock::now();
  const auto late = [&] { return std::chrono::steady_clock::now() - begun > Milliseconds(5000); };
  HttpSink sink{.write =
                    [&](std::string_view) {
                      written();
                      return true;
                    },
                .stopping = late};
  stream.send(sink);
  return !late();
}

TEST(EventStream, EndsWhenItsReaderMayReadNoMore) {
  SystemClock clock;
  EventLog log(clock);
  EXPECT_TRUE(ends(log, false, [] {}));
  // Though events come without a pause.
  EXPECT_TRUE(ends(log, false, [&] { log.add(LogLevel::kInfo, "mds", "one-more"); }));
}

TEST(EventStream, EndsWithTheLog) {
  SystemClock clock;
  EventLog log(clock);
  log.stop();
  EXPECT_TRUE(ends(log, true, [] {}));
}

TEST(EventStream, AnIdOfAnotherRunIsNone) {
  EXPECT_EQ(sequence_of_id("r:7", "r"), 7u);
  EXPECT_EQ(sequence_of_id("q:7", "r"), std::nullopt);
  EXPECT_EQ(sequence_of_id("r:x", "r"), std::nullopt);
  EXPECT_EQ(sequence_of_id("", "r"), std::nullopt);
}

}  // namespace
}  // namespace pnfsrdma::console
