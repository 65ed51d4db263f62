// SPDX-License-Identifier: Apache-2.0
#include "server/mds/admin/cluster_survey.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "server/mds/log/lead_keeper.h"
#include "tests/doubles/metadata/memory_key_server.h"

namespace pnfsrdma::mds {
namespace {

using console::Cluster;
using console::ClusterMember;
using console::ClusterServerState;
using ::testing::HasSubstr;

// Three members of etcd, a server "a" that leads and a server "b" that follows.
class Survey : public ::testing::Test {
 protected:
  Survey() {
    for (const char* name : {"m1", "m2", "m3"})
      members.push_back(
          {.id = name, .name = name, .address = "http://x", .answers = true, .version = "3.4.23"});
    keys.put(names.identity(), std::string(32, '1') + " from-nothing");
    keys.put(names.leader(), LeadClaim{"a", "0", "a's"}.text());
    keys.put(names.renewal(), PositionRow{100, "4096"}.text());
    keys.put(names.trimmed(), "90");
    say("a", 100);
    say("b", 97);
  }
  void say(const std::string& name, LogPosition position) {
    keys.put(names.member(name), PositionRow{position, name + "'s"}.text());
  }
  Cluster look() { return survey.look(now); }
  void passes(Milliseconds time) { now += time; }
  // All that is wrong, as one text.
  static std::string wrong(const Cluster& cluster) {
    std::string text;
    for (const auto& problem : cluster.problems) text += problem.detail + " " + problem.fix + "\n";
    return text;
  }

  MemoryKeys keys;
  const LogKeys names{"/test"};
  std::vector<ClusterMember> members;
  std::unique_ptr<KeyServer> server = keys.connector()();
  ClusterSurvey survey{*server, names, [this] { return Result<std::vector<ClusterMember>>(members); }};
  SteadyTime now{std::chrono::hours(1)};
};

TEST_F(Survey, SaysWhoLeadsWhoFollowsAndHowFar) {
  const Cluster cluster = look();
  EXPECT_EQ(cluster.log, std::string(32, '1'));
  EXPECT_EQ(cluster.leader, "a");
  EXPECT_EQ(cluster.position, 100u);
  EXPECT_EQ(cluster.trimmed, 90u);
  EXPECT_EQ(cluster.window_bytes, 4096u);
  ASSERT_EQ(cluster.servers.size(), 2u);
  EXPECT_EQ(cluster.servers[0].state, ClusterServerState::kLeads);
  EXPECT_EQ(cluster.servers[1].name, "b");
  EXPECT_EQ(cluster.servers[1].state, ClusterServerState::kFollows);
  EXPECT_EQ(cluster.servers[1].behind, 3u);
  EXPECT_TRUE(cluster.takeover);
  EXPECT_EQ(cluster.takeovers, 0u);
  EXPECT_EQ(wrong(cluster), "");
  keys.put(names.takeovers(), "3");
  EXPECT_EQ(look().takeovers, 3u);
}

TEST_F(Survey, WhoPutsItsRowNoMoreIsAway) {
  look();
  passes(ClusterSurvey::kAwayAfter);
  say("a", 100);
  const Cluster cluster = look();
  EXPECT_EQ(cluster.servers[0].state, ClusterServerState::kLeads);
  EXPECT_EQ(cluster.servers[1].state, ClusterServerState::kAway);
  EXPECT_FALSE(cluster.takeover);
  EXPECT_THAT(wrong(cluster), HasSubstr("b neither leads nor follows."));
  EXPECT_THAT(wrong(cluster), HasSubstr("pnfsrdma cluster leave b"));
  say("b", 97);
  EXPECT_TRUE(look().takeover);
}

TEST_F(Survey, ALeaderThatIsSilentLeadsNoMore) {
  look();
  passes(ClusterSurvey::kAwayAfter);
  say("b", 97);
  const Cluster cluster = look();
  EXPECT_EQ(cluster.leader, "");
  EXPECT_EQ(cluster.servers[0].state, ClusterServerState::kAway);
  EXPECT_THAT(wrong(cluster), HasSubstr("No metadata server leads."));
  EXPECT_FALSE(cluster.takeover);
}

TEST_F(Survey, WithoutAMemberToSpareNobodyTakesOver) {
  members[2].answers = false;
  Cluster cluster = look();
  EXPECT_FALSE(cluster.takeover);
  EXPECT_THAT(wrong(cluster), HasSubstr("etcd's member m3 (http://x) does not answer."));
  members[1].answers = false;
  EXPECT_THAT(wrong(look()), HasSubstr("etcd has no quorum: 1 of 3 members answer"));
  members.assign(1, members[0]);
  cluster = look();
  EXPECT_FALSE(cluster.takeover);
  EXPECT_THAT(wrong(cluster), HasSubstr("etcd has one member"));
  members.assign(4, members[0]);
  cluster = look();
  EXPECT_TRUE(cluster.takeover);  // three of four are left
  EXPECT_THAT(wrong(cluster), HasSubstr("no more of them than of 3"));
}

TEST_F(Survey, AnOldEtcdIsNamed) {
  members[1].version = "3.3.25";
  EXPECT_THAT(wrong(look()), HasSubstr("m2 (http://x) has version 3.3.25"));
  members[1].version = "3.10.1";
  EXPECT_EQ(wrong(look()), "");
}

TEST_F(Survey, AStandbyThatIsFarBehindDoesNotTakeOver) {
  keys.put(names.renewal(), PositionRow{100'000, "4096"}.text());
  const Cluster cluster = look();
  EXPECT_FALSE(cluster.takeover);
  EXPECT_THAT(wrong(cluster), HasSubstr("b is 99903 values of the log behind."));
}

TEST_F(Survey, AWindowThatIsNearlyFullIsSaid) {
  keys.put(names.renewal(), PositionRow{100, std::to_string(LeadKeeper::kWindowBytesMax / 100 * 81)}.text());
  EXPECT_THAT(wrong(look()), HasSubstr("414 of 512 MiB"));
}

TEST_F(Survey, OneServerAloneIsSaid) {
  keys.erase(names.member("b"));
  EXPECT_THAT(wrong(look()), HasSubstr("No other metadata server is there"));
}

TEST_F(Survey, ALogThatIsNotThereIsSaid) {
  keys.erase(names.identity());
  EXPECT_THAT(wrong(look()), HasSubstr("There is no log in etcd under /test."));
  keys.cut(true);
  EXPECT_THAT(wrong(look()), HasSubstr("The log cannot be read"));
}

TEST_F(Survey, IsACheckOfTheServersHealth) {
  console::Numbers numbers;
  add_cluster(std::nullopt, numbers);
  EXPECT_TRUE(numbers.checks.empty());
  add_cluster(look(), numbers);
  EXPECT_EQ(numbers.checks.back().status, console::HealthStatus::kOk);
  members.pop_back();
  add_cluster(look(), numbers);
  EXPECT_EQ(numbers.checks.back().status, console::HealthStatus::kWarning);
  EXPECT_THAT(numbers.checks.back().detail, HasSubstr("etcd has two members"));
  EXPECT_EQ(numbers.cluster->leader, "a");
}

}  // namespace
}  // namespace pnfsrdma::mds
