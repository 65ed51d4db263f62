// SPDX-License-Identifier: Apache-2.0
#include "cli/api/event_stream.h"

#include <gtest/gtest.h>

#include <vector>

namespace pnfsrdma::cli {
namespace {

constexpr std::string_view kStream =
    ": a comment\n\nid: 7\nevent: log\ndata: {\"a\":1}\n\ndata:two\ndata: lines\r\n\r\nid: 9\n\nretry: "
    "5\ndata\n\n";

std::vector<ServerEvent> parsed(std::string_view text, size_t piece) {
  std::vector<ServerEvent> events;
  EventStreamParser parser;
  for (size_t at = 0; at < text.size(); at += piece) {
    EXPECT_TRUE(parser.feed(text.substr(at, piece), [&](const ServerEvent& event) {
      events.push_back(event);
      return true;
    }));
  }
  EXPECT_EQ(parser.last_id(), "9");
  return events;
}

TEST(EventStream, IsTheSameHoweverItIsCut) {
  for (size_t piece = 1; piece <= kStream.size(); ++piece) {
    const auto events = parsed(kStream, piece);
    ASSERT_EQ(events.size(), 3u) << piece;
    EXPECT_EQ(events[0].id, "7");
    EXPECT_EQ(events[0].type, "log");
    EXPECT_EQ(events[0].data, "{\"a\":1}");
    EXPECT_EQ(events[1].data, "two\nlines");
    EXPECT_EQ(events[1].type, "");
    EXPECT_EQ(events[1].id, "7");
    EXPECT_EQ(events[2].data, "");
    EXPECT_EQ(events[2].id, "9");
  }
}

TEST(EventStream, EndsWhenNobodyWantsMore) {
  EventStreamParser parser;
  int seen = 0;
  EXPECT_FALSE(parser.feed("data: 1\n\ndata: 2\n\n", [&](const ServerEvent&) { return ++seen < 1; }));
  EXPECT_EQ(seen, 1);
}

}  // namespace
}  // namespace pnfsrdma::cli
