// SPDX-License-Identifier: Apache-2.0
#include "server/mds/admin/cluster_survey.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "server/mds/log/lead_keeper.h"

namespace pnfsrdma::mds {
namespace {

using console::Cluster;
using console::ClusterMember;
using console::ClusterServer;
using console::ClusterServerState;

constexpr KeyRevision kNever = -1;  // no key has it
constexpr size_t kServersMax = 64;
// A standby that is no further behind has all of it within a second or two.
constexpr uint64_t kBehindMax = 10'000;
constexpr uint64_t kWindowWarned = LeadKeeper::kWindowBytesMax / 5 * 4;
constexpr size_t kMembersLeast = 3;

std::string called(const ClusterMember& member) {
  const std::string& name = member.name.empty() ? member.id : member.name;
  return member.address.empty() ? name : name + " (" + member.address + ")";
}

// The JSON gateway's /v3 is there from 3.4 on.
bool too_old(const std::string& version) {
  unsigned major = 0;
  unsigned minor = 0;
  if (std::sscanf(version.c_str(), "%u.%u", &major, &minor) != 2) return false;
  return major < 3 || (major == 3 && minor < 4);
}

void judge_members(Cluster& cluster, size_t answering) {
  const auto add = [&](std::string detail, std::string fix) {
    cluster.problems.push_back({std::move(detail), std::move(fix)});
  };
  const size_t count = cluster.members.size();
  if (count == 0) return;
  if (answering <= count / 2) {
    add(fmt::format("etcd has no quorum: {} of {} members answer, so nobody serves.", answering, count),
        "Start the others.");
  }
  for (const ClusterMember& member : cluster.members) {
    if (!member.answers) {
      add("etcd's member " + called(member) + " does not answer.",
          "On its host: systemctl status etcd. If it is lost for good: pnfsrdma cluster leave " +
              (member.name.empty() ? member.id : member.name) + ", then pnfsrdma cluster invite.");
    } else if (too_old(member.version)) {
      add("etcd's member " + called(member) + " has version " + member.version + ".",
          "Upgrade it to 3.4 or later.");
    }
  }
  if (count < kMembersLeast) {
    add(fmt::format("etcd has {}: when one is lost, nobody serves.",
                    count == 1 ? "one member" : "two members"),
        "Have three: pnfsrdma cluster invite.");
  } else if (count % 2 == 0) {
    add(fmt::format("etcd has {} members: it can lose no more of them than of {}.", count, count - 1),
        "Add one, or remove one.");
  }
}

void judge_servers(Cluster& cluster) {
  const auto add = [&](std::string detail, std::string fix) {
    cluster.problems.push_back({std::move(detail), std::move(fix)});
  };
  if (cluster.leader.empty())
    add("No metadata server leads.", "On their hosts: systemctl status pnfsrdma-mdsd.");
  if (cluster.servers.size() < 2)
    add("No other metadata server is there to take over.", "Start another one with the same metadata_log.");
  for (const ClusterServer& server : cluster.servers) {
    if (server.state == ClusterServerState::kAway) {
      add(server.name + " neither leads nor follows.",
          "On its host: systemctl status pnfsrdma-mdsd. If it is gone for good: pnfsrdma cluster leave " +
              server.name + ".");
    } else if (server.behind > kBehindMax) {
      add(fmt::format("{} is {} values of the log behind.", server.name, server.behind),
          "Look at its metadata disk and at its network to etcd.");
    }
  }
  if (cluster.window_bytes > kWindowWarned) {
    add(fmt::format("The log has {} of {} MiB that some server does not have.", cluster.window_bytes >> 20,
                    cluster.window_bytes_max >> 20),
        "Start that server before it is full: else it has to begin with a copy of the metadata directory.");
  }
}

}  // namespace

void judge(Cluster& cluster) {
  const auto answering = static_cast<size_t>(std::ranges::count_if(cluster.members, &ClusterMember::answers));
  judge_members(cluster, answering);
  if (!cluster.log.empty()) judge_servers(cluster);
  // The host that is lost may have a member of etcd.
  const bool outlived = answering > cluster.members.size() / 2 + 1;
  const bool standby = std::ranges::any_of(cluster.servers, [](const ClusterServer& server) {
    return server.state == ClusterServerState::kFollows && server.behind <= kBehindMax;
  });
  cluster.takeover = outlived && standby && !cluster.leader.empty();
}

void add_cluster(std::optional<Cluster> cluster, console::Numbers& numbers) {
  if (!cluster) return;
  console::HealthCheck check{"cluster", console::HealthStatus::kOk,
                             "Another server takes over if this host is lost.", ""};
  if (!cluster->problems.empty()) {
    check.status = console::HealthStatus::kWarning;
    check.detail = cluster->problems.front().detail;
    check.fix = cluster->problems.front().fix;
  }
  numbers.checks.push_back(std::move(check));
  numbers.cluster = std::move(cluster);
}

ClusterSurvey::ClusterSurvey(KeyServer& server, LogKeys keys, Members members)
    : server_(server), keys_(std::move(keys)), members_(std::move(members)) {}

Cluster ClusterSurvey::look(SteadyTime now) {
  Cluster cluster{.prefix = keys_.prefix, .window_bytes_max = LeadKeeper::kWindowBytesMax};
  if (auto members = members_()) {
    cluster.members = std::move(*members);
  } else {
    cluster.problems.push_back(
        {members.error().what(), "Look at etcd, and at metadata_log in the configuration."});
  }
  if (const auto read = read_log(cluster, now); !read) {
    cluster.problems.push_back({"The log cannot be read: " + read.error().what(), "Look at etcd."});
  } else if (cluster.log.empty()) {
    cluster.problems.push_back(
        {"There is no log in etcd under " + keys_.prefix + ".", "The first server that starts begins one."});
  }
  judge(cluster);
  return cluster;
}

Result<> ClusterSurvey::read_log(Cluster& cluster, SteadyTime now) {
  TRY_ASSIGN(const KeyOutcome outcome,
             server_.commit({.if_all = {{keys_.leader(), kNever}},
                             .puts = {},
                             .erases = {},
                             .otherwise_read = {keys_.identity(), keys_.leader(), keys_.renewal(),
                                                keys_.trimmed(), keys_.takeovers()}}));
  TRY_ASSIGN(const std::vector<KeyRow> rows,
             server_.range(keys_.members(), keys_.members_end(), kServersMax));
  std::string leader;
  for (const KeyRow& row : outcome.found) {
    if (row.key == keys_.identity()) cluster.log = row.value.substr(0, row.value.find(' '));
    if (row.key == keys_.leader()) leader = LeadClaim::parse(row.value).name;
    if (row.key == keys_.trimmed()) cluster.trimmed = parse_decimal(row.value).value_or(0);
    if (row.key == keys_.takeovers()) cluster.takeovers = parse_decimal(row.value).value_or(0);
    if (row.key != keys_.renewal()) continue;
    const PositionRow renewal = PositionRow::parse(row.value);
    cluster.position = renewal.position;
    cluster.window_bytes = parse_decimal(renewal.rest).value_or(0);
  }
  for (const KeyRow& row : rows) {
    const std::string name = row.key.substr(keys_.members().size());
    const auto [seen, first] = seen_.try_emplace(name, Seen{row.revision, now});
    if (seen->second.revision != row.revision) seen->second = {row.revision, now};
    const bool away = now - seen->second.changed >= kAwayAfter;
    const LogPosition position = PositionRow::parse(row.value).position;
    const auto state = away             ? ClusterServerState::kAway
                       : name == leader ? ClusterServerState::kLeads
                                        : ClusterServerState::kFollows;
    cluster.servers.push_back({.name = name,
                               .state = state,
                               .position = position,
                               .behind = std::max(cluster.position, position) - position});
    if (state == ClusterServerState::kLeads) cluster.leader = name;
  }
  return {};
}

}  // namespace pnfsrdma::mds
