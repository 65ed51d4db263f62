// SPDX-License-Identifier: Apache-2.0
#include "server/console/throughput.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "server/console/inventory_json.h"
#include "server/console/metrics.h"
#include "tests/unit/console/api_world.h"

namespace pnfsrdma::console {
namespace {

Numbers numbers_at(int64_t second, uint64_t operations, uint64_t brick_bytes) {
  Numbers numbers;
  numbers.time.seconds = second;
  OperationCounter getattr{.name = "GETATTR", .count = operations};
  getattr.latency.counts[3] = operations;
  getattr.latency.sum_us = operations * 7;
  numbers.operations = {getattr};
  numbers.bricks.push_back({.id = "b",
                            .state = BrickState::kReady,
                            .durability = Durability::kPower,
                            .block_bytes = 2 << 20,
                            .blocks = 4});
  numbers.bricks[0].counted = true;
  numbers.bricks[0].counters.rdma_write_bytes = brick_bytes;
  return numbers;
}

TEST(Throughput, IsWhatHasHappenedInBetween) {
  Throughput throughput;
  throughput.add(numbers_at(10, 100, 1000));
  EXPECT_TRUE(throughput.newest(0, 10).empty());
  throughput.add(numbers_at(11, 150, 5000));
  throughput.add(numbers_at(13, 150, 5000));
  const auto samples = throughput.newest(0, 10);
  ASSERT_EQ(samples.size(), 2u);
  EXPECT_EQ(samples[0].operations, 50u);
  EXPECT_EQ(samples[0].bricks.rdma_write_bytes, 4000u);
  EXPECT_EQ(samples[0].interval_ms, 1000u);
  EXPECT_GT(samples[0].p99_us, 5);
  EXPECT_LE(samples[0].p99_us, 10);
  EXPECT_EQ(samples[1].operations, 0u);
  EXPECT_EQ(samples[1].interval_ms, 2000u);
  EXPECT_EQ(throughput.newest(1, 10).size(), 1u);
  EXPECT_EQ(throughput.newest(0, 1).front().sequence, 2u);
}

TEST(Throughput, ABrickThatStartsAnewOrComesDoesNotLeap) {
  Throughput throughput;
  throughput.add(numbers_at(10, 0, 5000));
  throughput.add(numbers_at(11, 0, 100));
  Numbers more = numbers_at(12, 0, 100);
  more.bricks.push_back({.id = "new"});
  more.bricks[1].counters.rdma_write_bytes = 1'000'000;
  throughput.add(more);
  const auto samples = throughput.newest(0, 10);
  EXPECT_EQ(samples[0].bricks.rdma_write_bytes, 100u);
  EXPECT_EQ(samples[1].bricks.rdma_write_bytes, 0u);
}

TEST(Throughput, ABrickThatTellsItsCountersForTheFirstTimeDoesNotLeap) {
  Throughput throughput;
  Numbers silent = numbers_at(10, 0, 0);
  silent.bricks[0].counted = false;
  throughput.add(silent);
  throughput.add(numbers_at(11, 0, uint64_t{1} << 40));
  throughput.add(numbers_at(12, 0, (uint64_t{1} << 40) + 7));
  const auto samples = throughput.newest(0, 10);
  EXPECT_EQ(samples[0].bricks.rdma_write_bytes, 0u);
  EXPECT_EQ(samples[1].bricks.rdma_write_bytes, 7u);
}

TEST(Throughput, PercentilesLieInTheirBucket) {
  LatencyHistogram histogram;
  EXPECT_EQ(percentile(histogram, 0.5), 0);
  histogram.counts[0] = 50;  // up to 1 us
  histogram.counts[6] = 50;  // 50 to 100 us
  EXPECT_LE(percentile(histogram, 0.5), 1);
  EXPECT_GT(percentile(histogram, 0.51), 50);
  EXPECT_LE(percentile(histogram, 0.99), 100);
  LatencyHistogram slow;
  slow.counts.back() = 1;
  EXPECT_EQ(percentile(slow, 0.99), 10'000'000);
}

TEST(Metrics, PromtoolHasNothingToSay) {
  if (std::system("command -v promtool >/dev/null 2>&1") != 0)
    GTEST_SKIP() << "no promtool (package prometheus)";
  testing::TemporaryFolder folder;
  std::ofstream(folder / "metrics") << metrics_text(numbers_at(10, 3, 4), {.requests = 1}, "0.1.0");
  const std::string command =
      "promtool check metrics <" + (folder / "metrics") + " >" + (folder / "said") + " 2>&1";
  const int status = std::system(command.c_str());
  std::ifstream said(folder / "said");
  EXPECT_EQ(status, 0) << std::string(std::istreambuf_iterator<char>(said), {});
}

TEST(Metrics, AHistogramIsCumulativeAndEndsWithAll) {
  const std::string text = metrics_text(numbers_at(10, 3, 4), {}, "0.1.0");
  EXPECT_NE(text.find("pnfsrdma_mds_operation_seconds_bucket{operation=\"GETATTR\",le=\"5e-06\"} 0"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("pnfsrdma_mds_operation_seconds_bucket{operation=\"GETATTR\",le=\"1e-05\"} 3"),
            std::string::npos);
  EXPECT_NE(text.find("pnfsrdma_mds_operation_seconds_bucket{operation=\"GETATTR\",le=\"+Inf\"} 3"),
            std::string::npos);
  EXPECT_NE(text.find("pnfsrdma_brick_bytes_total{brick=\"b\",direction=\"write\"} 4"), std::string::npos);
}

TEST(Metrics, TheTurnsOfBothLoopsAreAHistogram) {
  Numbers numbers = numbers_at(10, 3, 4);
  numbers.turns.times.counts[6] = 7;   // 50 to 100 us
  numbers.turns.times.counts[16] = 1;  // 100 to 200 ms
  numbers.turns.slow = 1;
  numbers.turns.longest_ms = 150;
  numbers.bricks[0].turns.times.counts[0] = 9;
  const std::string text = metrics_text(numbers, {}, "0.1.0");
  EXPECT_NE(text.find("pnfsrdma_mds_loop_turn_seconds_bucket{le=\"0.1\"} 7"), std::string::npos) << text;
  EXPECT_NE(text.find("pnfsrdma_mds_loop_turn_seconds_count 8"), std::string::npos);
  EXPECT_NE(text.find("pnfsrdma_mds_loop_slow_turns_total 1"), std::string::npos);
  EXPECT_NE(text.find("pnfsrdma_mds_loop_longest_turn_seconds 0.15"), std::string::npos);
  EXPECT_NE(text.find("pnfsrdma_brick_loop_turn_seconds_count{brick=\"b\"} 9"), std::string::npos);
}

TEST(Metrics, AClusterIsCountedWhereThereIsOne) {
  Numbers numbers = numbers_at(10, 3, 4);
  EXPECT_EQ(metrics_text(numbers, {}, "0.1.0").find("pnfsrdma_mds_log_"), std::string::npos);
  numbers.cluster = Cluster{.position = 9, .takeover = true, .takeovers = 2};
  numbers.cluster->servers = {{.name = "a", .state = ClusterServerState::kLeads},
                              {.name = "b", .state = ClusterServerState::kAway, .behind = 5}};
  numbers.cluster->members = {{.id = "1", .answers = true}, {.id = "2"}};
  const std::string text = metrics_text(numbers, {}, "0.1.0");
  for (const char* line :
       {"pnfsrdma_mds_log_position 9", "pnfsrdma_mds_log_behind{server=\"b\"} 5",
        "pnfsrdma_mds_log_server_up{server=\"a\"} 1", "pnfsrdma_mds_log_server_up{server=\"b\"} 0",
        "pnfsrdma_mds_log_etcd_member_up{member=\"1\"} 1", "pnfsrdma_mds_log_etcd_member_up{member=\"2\"} 0",
        "pnfsrdma_mds_log_takeover_possible 1", "pnfsrdma_mds_log_takeovers_total 2"})
    EXPECT_NE(text.find(line), std::string::npos) << line;
  EXPECT_EQ(text.find("pnfsrdma_mds_log_commit_seconds"), std::string::npos);
}

TEST(Metrics, TheServerThatLeadsSaysWhatTheLogCosts) {
  Numbers numbers = numbers_at(10, 3, 4);
  numbers.cluster = Cluster{.costs = LogCosts{.bytes = 700, .checkpoint = 8, .checkpoint_seconds = 4}};
  numbers.cluster->costs->commits.counts[10] = 7;
  numbers.cluster->costs->commits.sum_us = 14'000;
  const std::string text = metrics_text(numbers, {}, "0.1.0");
  for (const char* line :
       {"pnfsrdma_mds_log_commit_seconds_count 7", "pnfsrdma_mds_log_commit_seconds_sum 0.014",
        "pnfsrdma_mds_log_bytes_total 700", "pnfsrdma_mds_log_checkpoint_position 8",
        "pnfsrdma_mds_log_checkpoint_age_seconds 4"})
    EXPECT_NE(text.find(line), std::string::npos) << line;
  const Json shown = to_json(numbers.cluster);
  EXPECT_EQ(shown["costs"]["values"], 7);
  EXPECT_GT(shown["costs"]["latency_us"]["p50"], 1000);
  EXPECT_LE(shown["costs"]["latency_us"]["p99"], 2000);
  EXPECT_TRUE(to_json(std::optional(Cluster{}))["costs"].is_null());
}

TEST(Metrics, NeedTheRoleOfAViewer) {
  testing::ApiWorld world;
  EXPECT_EQ(world.send("GET", "/metrics").status, 200);
  EXPECT_EQ(world.send(testing::ApiWorld::from(world.request("GET", "/metrics"), "192.0.2.7")).status, 401);
}

}  // namespace
}  // namespace pnfsrdma::console
