// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/stat/rates.h"
#include "cli/stat/stat_report.h"

namespace pnfsrdma::cli {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

MountReading reading(uint64_t reads, uint64_t bytes) {
  MountReading taken{{"mds:/[iwarp+process]", "/mnt/pmem"}, {}, {}};
  taken.status = {{"mounted_seconds", 75},
                  {"durability", "process"},
                  {"server",
                   {{"address", "mds:2049"},
                    {"host", "mds"},
                    {"minor_version", 2},
                    {"calls_by", "tcp"},
                    {"lease_seconds", 30}}},
                  {"devices", json::array({{{"device", "ab12"},
                                            {"connected", true},
                                            {"transport", "iwarp"},
                                            {"flush_method", "native"},
                                            {"choice", "verbs 192.0.2.1:20052 failed: no route"}}})},
                  {"latency", {{"read", {{"count", reads}, {"nanoseconds", reads * 50'000}}}}}};
  taken.statistics = {{"rdma_read_bytes", bytes},
                      {"mds_read_bytes", bytes / 3},
                      {"rdma_reads", reads},
                      {"mds_operations", {{"OPEN", 2}, {"LOOKUP", 40}}}};
  return taken;
}

TEST(StatReport, SaysWhatIsInUseAndWhy) {
  const std::string text = stat_report(reading(10, 40960), {});
  EXPECT_THAT(text, HasSubstr("mds:/[iwarp+process] on /mnt/pmem"));
  EXPECT_THAT(text, HasSubstr("NFSv4.2, calls by tcp"));
  EXPECT_THAT(text, HasSubstr("verbs 192.0.2.1:20052 failed: no route"));
  EXPECT_THAT(text, HasSubstr("1 min 15 s"));
  EXPECT_THAT(text, HasSubstr("50.0 us"));
  EXPECT_THAT(text, HasSubstr("40.0 KiB"));
  EXPECT_THAT(text, HasSubstr("LOOKUP 40, OPEN 2"));
}

TEST(StatReport, EventsAreShownOnlyWhenTheyHappened) {
  MountReading taken = reading(1, 1);
  EXPECT_THAT(stat_report(taken, {}), Not(HasSubstr("lost_writes")));
  taken.statistics["lost_writes"] = 2;
  EXPECT_THAT(stat_report(taken, {}), HasSubstr("lost_writes"));
}

TEST(StatReport, AnotherVersionsAnswerDoesNotEndTheProgram) {
  MountReading taken{{"s", "/m"}, json::object(), json::object()};
  EXPECT_THAT(stat_report(taken, {}), HasSubstr("s on /m"));
  taken.status = {{"devices", "none"}, {"server", 5}, {"mounted_seconds", "x"}, {"transports", {{"a", 1}}}};
  taken.statistics = {{"mds_operations", json::array({1, 2})}};
  EXPECT_THAT(stat_report(taken, {}), HasSubstr("s on /m"));
}

TEST(StatJson, HoldsStatusAndCounters) {
  const json all = stat_json(reading(10, 1));
  EXPECT_EQ(all["mounted_on"], "/mnt/pmem");
  EXPECT_EQ(all["statistics"]["rdma_reads"], 10);
  EXPECT_EQ(all["durability"], "process");
}

TEST(Rates, AreOfTheInterval) {
  const Rates rates =
      rates_between(reading(100, 3'000'000), reading(300, 9'000'000), std::chrono::seconds(2));
  const Rate& read = rates[0];
  EXPECT_EQ(read.operation, "read");
  EXPECT_DOUBLE_EQ(read.operations_per_second, 100);
  EXPECT_DOUBLE_EQ(read.bytes_per_second, 4'000'000);
  EXPECT_DOUBLE_EQ(read.bytes_per_operation, 40'000);
  EXPECT_NEAR(read.average_seconds, 50e-6, 1e-12);
  EXPECT_DOUBLE_EQ(read.by_rdma, 0.75);
  EXPECT_DOUBLE_EQ(rates[1].operations_per_second, 0);
}

TEST(Rates, AMountMadeAnewBeginsAtZero) {
  const Rates rates = rates_between(reading(1000, 3000), reading(10, 300), std::chrono::seconds(1));
  EXPECT_DOUBLE_EQ(rates[0].operations_per_second, 10);
}

}  // namespace
}  // namespace pnfsrdma::cli
