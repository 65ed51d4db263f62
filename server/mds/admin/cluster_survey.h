// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "server/console/inventory.h"
#include "server/mds/log/key_server.h"
#include "server/mds/log/log_keys.h"
#include "shared/base/clock.h"
#include "shared/base/result.h"

namespace pnfsrdma::mds {

// The servers that share the metadata's log, and the etcd that has it, as they look from here. Who is there shows in
// two looks: a server puts its row again and again. Blocks, one thread at a time.
class ClusterSurvey {
 public:
  // The members of etcd, whether they answer or not. Fails when none of those that are configured does.
  using Members = std::function<Result<std::vector<console::ClusterMember>>()>;
  // `server` outlives this.
  ClusterSurvey(KeyServer& server, LogKeys keys, Members members);

  // `now`: when it was asked for.
  console::Cluster look(SteadyTime now);

  // A server that has not put its row for so long is away: four times what it takes.
  static constexpr Milliseconds kAwayAfter{4000};

 private:
  struct Seen {
    KeyRevision revision = 0;
    SteadyTime changed{};
  };
  Result<> read_log(console::Cluster& cluster, SteadyTime now);

  KeyServer& server_;
  const LogKeys keys_;
  const Members members_;
  std::map<std::string, Seen> seen_;  // by the servers' names
};

// It, and the check "cluster" of the server's health. nullopt: it was not looked yet.
void add_cluster(std::optional<console::Cluster> cluster, console::Numbers& numbers);

// What is wrong with it, with what to do, and whether a take-over is possible.
void judge(console::Cluster& cluster);

}  // namespace pnfsrdma::mds
