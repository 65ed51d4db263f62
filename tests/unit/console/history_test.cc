// SPDX-License-Identifier: Apache-2.0
#include "server/console/history.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <utility>

namespace pnfsrdma::console {
namespace {

constexpr int64_t kNoon = 1'772'366'400;  // a multiple of every step

// A server of some clients, bricks and exports, whose counters the test turns.
struct Turned {
  Numbers numbers;
  Activity activity;

  explicit Turned(int64_t second) {
    numbers.time.seconds = second;
    numbers.operations = {{.name = "READ"}};
    numbers.bricks = {{.id = "b", .name = "brick", .state = BrickState::kReady, .counted = true}};
    activity.clients = {{.id = 1, .name = "alice"}, {.id = 2, .name = "bob"}};
    activity.exports = {{.id = 1, .path = "/"}};
    activity.bricks = {{.brick = "b", .clients = {{1, {}}, {2, {}}}}};
  }
  DirectCounters& direct(size_t client) { return activity.bricks[0].clients[client].second; }
  void hand_in(History& history) { history.add(numbers, activity); }
};

const HistoryKey kServer{HistoryOf::kServer, ""};
const HistoryKey kAlice{HistoryOf::kClient, "0000000000000001"};
const HistoryKey kBob{HistoryOf::kClient, "0000000000000002"};

TEST(HistoryRing, AgreesWithANaiveListHoweverTimeGoes) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 20; ++round) {
    for (const HistoryRange& range : kHistoryRanges) {
      HistoryRing<Amounts> ring(range.step_seconds);
      std::vector<std::pair<int64_t, Amounts>> all;
      int64_t now = kNoon + static_cast<int64_t>(random() % 100'000);
      for (int i = 0; i < 500; ++i) {
        now += static_cast<int64_t>(random() % 50 == 0 ? random() % 20'000 : random() % 3);
        const Amounts amounts{.covered_ms = 1000,
                              .operations = random() % 10,
                              .rdma_write_bytes = random() % 1000,
                              .used_bytes = random()};
        ring.add(now, amounts);
        all.emplace_back(now, amounts);
      }
      std::vector<std::optional<Amounts>> expected(kHistoryPoints);
      for (const auto& [second, amounts] : all) {
        const int64_t place = (second - ring.first_second(now)) / range.step_seconds;
        if (second < ring.first_second(now)) continue;
        auto& point = expected.at(static_cast<size_t>(place));
        if (!point) point.emplace();
        *point += amounts;
      }
      ASSERT_EQ(ring.until(now), expected) << range.name << " round " << round;
    }
  }
}

TEST(HistoryRing, IsNotLedAstrayByAClockThatWasWrong) {
  HistoryRing<Amounts> ring(5);
  ring.add(kNoon + 10'000'000, {.covered_ms = 1});
  ring.add(kNoon, {.covered_ms = 1000, .operations = 3});
  const auto points = ring.until(kNoon);
  EXPECT_EQ(points.back()->operations, 3u);
  EXPECT_EQ(std::ranges::count_if(points, [](const auto& point) { return point.has_value(); }), 1);
}

TEST(History, EveryRangeHasTheSameSum) {
  History history;
  Turned turned(kNoon - 300);
  std::mt19937_64 random(3);
  turned.numbers.operations[0].count = 1'000'000;
  turned.numbers.bricks[0].counters.rdma_write_bytes = uint64_t{1} << 40;
  turned.hand_in(history);
  Amounts all;
  for (int i = 0; i < 300; ++i) {
    ++turned.numbers.time.seconds;
    const uint64_t operations = random() % 100;
    const uint64_t bytes = random() % 100'000;
    turned.numbers.operations[0].count += operations;
    turned.numbers.operations[0].latency.counts[4] += operations;
    turned.numbers.bricks[0].counters.rdma_write_bytes += bytes;
    turned.numbers.bricks[0].used_bytes = 1000 + static_cast<uint64_t>(i);
    turned.hand_in(history);
    all += {.covered_ms = 1000,
            .operations = operations,
            .rdma_write_bytes = bytes,
            .used_bytes = 1000 + static_cast<uint64_t>(i)};
  }
  for (size_t range = 0; range < kHistoryRanges.size(); ++range) {
    const auto series = history.get(kServer, range, kNoon);
    ASSERT_TRUE(series);
    Amounts sum;
    LatencyHistogram latency;
    for (size_t i = 0; i < kHistoryPoints; ++i) {
      if (series->points[i]) sum += *series->points[i];
      if (series->latency[i]) latency += *series->latency[i];
    }
    EXPECT_EQ(sum, all) << kHistoryRanges[range].name;
    EXPECT_EQ(latency.counts[4], all.operations);
  }
  // The brick's is its own.
  const auto brick = history.get({HistoryOf::kBrick, "b"}, 3, kNoon);
  ASSERT_TRUE(brick);
  EXPECT_EQ(brick->name, "brick");
  EXPECT_EQ(brick->points.back()->used_bytes, 1299u);
  EXPECT_EQ(brick->points.back()->operations, 0u);
}

TEST(History, WhoeverComesOrStartsAnewDoesNotLeap) {
  History history;
  Turned turned(kNoon);
  turned.numbers.bricks[0].counters.rdma_read_bytes = 5000;
  turned.direct(0).read_bytes = 5000;
  turned.hand_in(history);
  // Started anew; the client's session, too.
  ++turned.numbers.time.seconds;
  turned.numbers.bricks[0].counters.rdma_read_bytes = 70;
  turned.direct(0).read_bytes = 70;
  turned.hand_in(history);
  EXPECT_EQ(history.get(kServer, 0, kNoon + 1)->points.back()->rdma_read_bytes, 70u);
  EXPECT_EQ(history.get(kAlice, 0, kNoon + 1)->points.back()->rdma_read_bytes, 70u);
  // Away, and back with what nobody saw.
  ++turned.numbers.time.seconds;
  turned.numbers.bricks[0].state = BrickState::kAway;
  const auto bricks = std::exchange(turned.activity.bricks, {});
  turned.hand_in(history);
  ++turned.numbers.time.seconds;
  turned.numbers.bricks[0].state = BrickState::kReady;
  turned.numbers.bricks[0].counters.rdma_read_bytes = 1'000'000;
  turned.activity.bricks = bricks;
  turned.direct(0).read_bytes = 1'000'000;
  turned.hand_in(history);
  // A brick that has not told anything yet.
  turned.numbers.bricks.push_back({.id = "c", .state = BrickState::kReady, .counted = false});
  ++turned.numbers.time.seconds;
  turned.hand_in(history);
  turned.numbers.bricks[1].counted = true;
  turned.numbers.bricks[1].counters.rdma_read_bytes = 9'000'000;
  ++turned.numbers.time.seconds;
  turned.hand_in(history);
  Amounts server;
  const auto servers = history.get(kServer, 0, kNoon + 5);
  for (const auto& point : servers->points) {
    if (point) server += *point;
  }
  EXPECT_EQ(server.rdma_read_bytes, 70u);
  Amounts alice;
  const auto alices = history.get(kAlice, 0, kNoon + 5);
  for (const auto& point : alices->points) {
    if (point) alice += *point;
  }
  EXPECT_EQ(alice.rdma_read_bytes, 70u);
}

TEST(History, WhatAClientDoesInItsFirstSecondCounts) {
  History history;
  Turned turned(kNoon);
  turned.hand_in(history);
  ++turned.numbers.time.seconds;
  turned.activity.clients.push_back({.id = 3, .name = "carol", .served = {.operations = 12}});
  turned.hand_in(history);
  const auto carol = history.get({HistoryOf::kClient, "0000000000000003"}, 0, kNoon + 1);
  ASSERT_TRUE(carol);
  EXPECT_EQ(carol->points.back()->operations, 12u);
  EXPECT_EQ(carol->points.back()->covered_ms, 1000u);
}

TEST(History, ABrickThatIsAwayIsAGapAndAnIdleOneIsZero) {
  History history;
  Turned turned(kNoon - 20);
  for (int i = 0; i < 20; ++i) {
    ++turned.numbers.time.seconds;
    turned.numbers.bricks[0].state = i >= 5 && i < 15 ? BrickState::kAway : BrickState::kReady;
    turned.hand_in(history);
  }
  const auto points = history.get({HistoryOf::kBrick, "b"}, 0, kNoon)->points;
  EXPECT_TRUE(points[kHistoryPoints - 5]);
  EXPECT_FALSE(points[kHistoryPoints - 3]);
  ASSERT_TRUE(points.back());
  EXPECT_EQ(points.back()->rdma_reads, 0u);
}

TEST(History, AClientHasWhatItDidStraightAndThroughTheServer) {
  History history;
  Turned turned(kNoon);
  turned.hand_in(history);
  ++turned.numbers.time.seconds;
  turned.activity.clients[0].served = {.operations = 7, .read_bytes = 100, .write_bytes = 200};
  turned.direct(0) = {.read_bytes = 1000, .write_bytes = 2000, .reads = 1, .writes = 2};
  turned.activity.exports[0].served = {.operations = 9, .read_bytes = 100, .write_bytes = 200};
  turned.hand_in(history);
  const auto alice = history.get(kAlice, 1, kNoon + 1);
  ASSERT_TRUE(alice);
  EXPECT_EQ(alice->name, "alice");
  EXPECT_TRUE(alice->direct);
  const Amounts expected{.covered_ms = 1000,
                         .operations = 7,
                         .mds_read_bytes = 100,
                         .mds_write_bytes = 200,
                         .rdma_read_bytes = 1000,
                         .rdma_write_bytes = 2000,
                         .rdma_reads = 1,
                         .rdma_writes = 2};
  EXPECT_EQ(*alice->points.back(), expected);
  EXPECT_EQ(history.get(kBob, 1, kNoon + 1)->points.back()->operations, 0u);
  const auto root = history.get({HistoryOf::kExport, "1"}, 0, kNoon + 1);
  ASSERT_TRUE(root);
  EXPECT_FALSE(root->direct);
  EXPECT_EQ(root->points.back()->operations, 9u);
  const auto busiest = history.busiest_clients(10, kNoon + 1);
  ASSERT_EQ(busiest.size(), 1u);
  EXPECT_EQ(busiest[0].name, "alice");
  EXPECT_EQ(busiest[0].amounts, expected);
}

TEST(History, WithoutABrickThatTellsDirectBytesAreUnknown) {
  History history;
  Turned turned(kNoon);
  turned.activity.bricks.clear();
  turned.hand_in(history);
  ++turned.numbers.time.seconds;
  turned.hand_in(history);
  EXPECT_FALSE(history.get(kAlice, 0, kNoon + 1)->direct);
  EXPECT_FALSE(history.get({HistoryOf::kClient, "00000000000000ff"}, 0, kNoon + 1));
}

TEST(History, PlacesAreBoundedTheLastToComeShareOne) {
  History history;
  Turned turned(kNoon);
  turned.activity.clients.clear();
  for (uint64_t id = 1; id <= kClientHistories + 3; ++id)
    turned.activity.clients.push_back({.id = id, .name = "c"});
  turned.hand_in(history);
  ++turned.numbers.time.seconds;
  for (auto& client : turned.activity.clients) client.served.operations = 10;
  turned.hand_in(history);
  const auto others = history.get({HistoryOf::kClient, kOthers}, 0, kNoon + 1);
  ASSERT_TRUE(others);
  EXPECT_EQ(others->points.back()->operations, 30u);
  EXPECT_EQ(others->points.back()->covered_ms, 1000u);
  EXPECT_TRUE(history.get(kAlice, 0, kNoon + 1));
  // One that has gone gives its place to one that is there.
  turned.activity.clients.erase(turned.activity.clients.begin());
  for (int i = 0; i < 10; ++i) {
    ++turned.numbers.time.seconds;
    turned.hand_in(history);
  }
  EXPECT_FALSE(history.get(kAlice, 0, turned.numbers.time.seconds));
  EXPECT_EQ(
      history.get({HistoryOf::kClient, kOthers}, 0, turned.numbers.time.seconds)->points.back()->covered_ms,
      2000u);
}

}  // namespace
}  // namespace pnfsrdma::console
