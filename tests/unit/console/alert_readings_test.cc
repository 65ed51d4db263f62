// SPDX-License-Identifier: Apache-2.0
#include "server/console/alert_readings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace pnfsrdma::console {
namespace {

using std::chrono::seconds;
using Names = std::set<std::string>;

// A server that is well, and a clock.
class Readings : public ::testing::Test {
 protected:
  Readings() {
    numbers.metadata_disk_bytes = uint64_t{100} << 30;
    numbers.metadata_disk_free_bytes = uint64_t{50} << 30;
    numbers.bricks.push_back({.id = "b1",
                              .name = "rack1",
                              .address = "tcp:192.0.2.1:20050",
                              .state = BrickState::kReady,
                              .durability = Durability::kPower,
                              .block_bytes = 2 << 20,
                              .blocks = 100,
                              .free_blocks = 90});
  }
  std::vector<AlertCondition> evaluate() {
    return readings.evaluate({.numbers = numbers,
                              .certificate_seconds_left = certificate,
                              .starts = starts,
                              .now = SteadyTime(now)});
  }
  // Those that hold, by name.
  Names holding() {
    Names names;
    for (const AlertCondition& one : evaluate()) {
      if (one.known) names.emplace(one.rule->name);
    }
    return names;
  }
  Names unknown() {
    Names names;
    for (const AlertCondition& one : evaluate()) {
      if (!one.known) names.emplace(one.rule->name);
    }
    return names;
  }

  AlertReadings readings{"server1"};
  Numbers numbers;
  std::optional<double> certificate = 300.0 * 86400;
  size_t starts = 1;
  seconds now{10'000};
};

TEST_F(Readings, NothingIsWrongWithAServerThatIsWell) {
  EXPECT_EQ(holding(), Names{});
  EXPECT_EQ(unknown(), Names{});
}

TEST_F(Readings, ACertificateWarnsAMonthAheadAndIsCriticalInItsLastWeek) {
  certificate = 30.0 * 86400;
  EXPECT_EQ(holding(), Names{});
  certificate = 30.0 * 86400 - 1;
  EXPECT_EQ(holding(), Names{"PnfsrdmaCertificateExpires"});
  certificate = 7.0 * 86400;
  EXPECT_EQ(holding(), Names{"PnfsrdmaCertificateExpires"});
  certificate = 7.0 * 86400 - 1;
  EXPECT_EQ(holding(), Names{"PnfsrdmaCertificateExpiresSoon"});
  certificate = -5;
  EXPECT_EQ(holding(), Names{"PnfsrdmaCertificateExpiresSoon"});
  certificate.reset();
  EXPECT_EQ(unknown(), (Names{"PnfsrdmaCertificateExpires", "PnfsrdmaCertificateExpiresSoon"}));
}

TEST_F(Readings, AClusterIsWatchedWhereThereIsOne) {
  numbers.cluster = Cluster{.window_bytes_max = 1000, .takeover = true};
  EXPECT_EQ(holding(), Names{});
  numbers.cluster->takeover = false;
  EXPECT_EQ(holding(), Names{"PnfsrdmaNoTakeOver"});
  numbers.cluster->takeover = true;
  numbers.cluster->servers = {{.name = "a", .behind = 10'000}, {.name = "b", .behind = 0}};
  EXPECT_EQ(holding(), Names{});
  numbers.cluster->servers[1].behind = 10'001;
  EXPECT_EQ(holding(), Names{"PnfsrdmaStandbyLags"});
  EXPECT_THAT(evaluate().back().summary, ::testing::HasSubstr("10001 values"));
  numbers.cluster->servers.clear();
  numbers.cluster->window_bytes = 800;
  EXPECT_EQ(holding(), Names{});
  numbers.cluster->window_bytes = 801;
  EXPECT_EQ(holding(), Names{"PnfsrdmaLogWindowNearlyFull"});
}

TEST_F(Readings, CapacityIsWatchedPerBrickAndInAll) {
  numbers.bricks.front().free_blocks = 20;
  EXPECT_EQ(holding(), Names{});
  numbers.bricks.front().free_blocks = 19;
  EXPECT_EQ(holding(), Names{"PnfsrdmaPoolNearlyFull"});
  numbers.bricks.front().free_blocks = 9;
  EXPECT_EQ(holding(), (Names{"PnfsrdmaPoolNearlyFull", "PnfsrdmaBrickNearlyFull"}));
  EXPECT_EQ(evaluate().back().summary, "The brick rack1 has 9% left");
  numbers.bricks.front().free_blocks = 1;
  EXPECT_EQ(holding(), (Names{"PnfsrdmaPoolNearlyFull", "PnfsrdmaBrickNearlyFull", "PnfsrdmaPoolFull"}));
  // Another brick has room.
  numbers.bricks.push_back(numbers.bricks.front());
  numbers.bricks.back().id = "b2";
  numbers.bricks.back().free_blocks = 100;
  EXPECT_EQ(holding(), Names{"PnfsrdmaBrickNearlyFull"});
}

TEST_F(Readings, ABrickThatWasNeverReachedIsAwayAndNothingElseIsKnownOfIt) {
  numbers.bricks = {{.address = "tcp:192.0.2.1:20050", .state = BrickState::kConnecting}};
  EXPECT_EQ(holding(), Names{"PnfsrdmaBrickAway"});
  EXPECT_EQ(evaluate().at(2).subject, "tcp:192.0.2.1:20050");
  EXPECT_EQ(unknown(), (Names{"PnfsrdmaPoolNearlyFull", "PnfsrdmaPoolFull", "PnfsrdmaBrickNearlyFull",
                              "PnfsrdmaBrickVolatile"}));
}

TEST_F(Readings, ABrickThatClientsCannotReachIsNamedWithTheirNumber) {
  numbers.bricks.front().unreached_by = {"node1-1a2b3c", "node2-4d5e6f"};
  EXPECT_EQ(holding(), Names{"PnfsrdmaBrickUnreached"});
  EXPECT_EQ(evaluate().back().summary, "2 clients cannot reach the memory of the brick rack1");
}

TEST_F(Readings, AVolatileBrickIsNamedAndOneWithoutANameGoesByItsAddress) {
  numbers.bricks.front().durability = Durability::kVolatile;
  EXPECT_EQ(holding(), Names{"PnfsrdmaBrickVolatile"});
  const auto summary = [&] {
    const auto readings = evaluate();
    return std::ranges::find(readings, "PnfsrdmaBrickVolatile",
                             [](const auto& one) { return one.rule->name; })
        ->summary;
  };
  numbers.bricks.front().name = "north";
  EXPECT_THAT(summary(), ::testing::HasSubstr("brick north "));
  numbers.bricks.front().name.clear();
  EXPECT_THAT(summary(), ::testing::HasSubstr("brick " + numbers.bricks.front().address + " "));
}

TEST_F(Readings, TheDiskOfTheMetadataMayBeLargeAndFullByShare) {
  numbers.metadata_disk_free_bytes = uint64_t{9} << 30;
  EXPECT_EQ(holding(), Names{});
  numbers.metadata_disk_free_bytes = uint64_t{7} << 30;
  EXPECT_EQ(holding(), Names{"PnfsrdmaMetadataDiskNearlyFull"});
  numbers.metadata_disk_bytes = uint64_t{10} << 30;  // small, and most of it free
  EXPECT_EQ(holding(), Names{});
  numbers.metadata_disk_free_bytes = 1 << 20;
  EXPECT_EQ(holding(), (Names{"PnfsrdmaMetadataDiskNearlyFull", "PnfsrdmaMetadataDiskFull"}));
  numbers.metadata_disk_bytes = 0;
  EXPECT_EQ(unknown(), (Names{"PnfsrdmaMetadataDiskNearlyFull", "PnfsrdmaMetadataDiskFull"}));
}

TEST_F(Readings, WhatHappenedIsSaidForTheWindowOfItsRule) {
  numbers.clients_expired = 4;  // before anybody looked
  EXPECT_EQ(holding(), Names{});
  now += seconds(5);
  numbers.clients_expired = 5;
  numbers.layouts_revoked = 2;
  EXPECT_EQ(holding(), (Names{"PnfsrdmaLeaseExpired", "PnfsrdmaLayoutsRevoked"}));
  for (int i = 0; i < 119; ++i) {
    now += seconds(5);
    EXPECT_EQ(holding(), (Names{"PnfsrdmaLeaseExpired", "PnfsrdmaLayoutsRevoked"})) << i;
  }
  now += seconds(5);
  EXPECT_EQ(holding(), Names{});
}

TEST_F(Readings, SlowIsWhatTheLastMinutesWere) {
  numbers.operations = {{.name = "READ", .count = 0, .errors = 0, .latency = {}}};
  auto& counts = numbers.operations.front().latency.counts;
  counts[3] = 1'000'000;  // quick ones, long ago
  EXPECT_EQ(holding(), Names{});
  now += seconds(400);
  EXPECT_EQ(holding(), Names{});
  now += seconds(5);
  counts[3] += 90;
  counts[18] += 10;  // 500 ms to 1 s
  EXPECT_EQ(holding(), Names{"PnfsrdmaMdsSlow"});
  now += seconds(5);
  counts[3] += 5'000;
  EXPECT_EQ(holding(), Names{});
}

TEST_F(Readings, StartsAndUnsyncedCommitsHaveALimit) {
  starts = 3;
  numbers.unsynced_commits = 10'000;
  EXPECT_EQ(holding(), Names{});
  starts = 4;
  numbers.unsynced_commits = 10'001;
  EXPECT_EQ(holding(), (Names{"PnfsrdmaMdsRestarts", "PnfsrdmaMetadataNotDurable"}));
}

TEST_F(Readings, AScheduledSnapshotMayBeAnHourLate) {
  numbers.snapshot_overdue_seconds = 3600;
  EXPECT_EQ(holding(), Names{});
  numbers.snapshot_overdue_seconds = 3601;
  EXPECT_EQ(holding(), Names{"PnfsrdmaSnapshotOverdue"});
}

TEST(Quantile, IsLinearWithinABucket) {
  LatencyHistogram histogram;
  EXPECT_FALSE(quantile_of(histogram, 0.5).has_value());
  histogram.counts[1] = 100;  // 1 to 2 us
  EXPECT_DOUBLE_EQ(*quantile_of(histogram, 0.5), 1.5e-6);
  histogram.counts.back() = 100;  // beyond the last bound: the bound
  EXPECT_DOUBLE_EQ(*quantile_of(histogram, 0.99), 10);
}

}  // namespace
}  // namespace pnfsrdma::console
