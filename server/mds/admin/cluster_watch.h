// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>

#include "server/console/inventory.h"
#include "server/mds/admin/cluster_survey.h"
#include "server/mds/log/etcd_client.h"
#include "server/mds/log/log_member.h"
#include "shared/base/guarded.h"
#include "shared/base/sync.h"

namespace pnfsrdma::mds {

// Every member that etcd has, asked one after the other: `options.patience` for one that is silent.
Result<std::vector<console::ClusterMember>> ask_members(EtcdClient& client, const EtcdOptions& options);

// Looks at the cluster once a second, in a thread of its own, while this server leads.
class ClusterWatch {
 public:
  ClusterWatch(const EtcdOptions& options, LogKeys keys);
  // Waits for the look that is under way: four seconds at most, if three members of etcd are silent.
  ~ClusterWatch();
  ClusterWatch(const ClusterWatch&) = delete;
  ClusterWatch& operator=(const ClusterWatch&) = delete;

  // As it was at the last look; nullopt: there was none yet. Any thread, at once.
  std::optional<console::Cluster> last();

 private:
  struct State {
    std::optional<console::Cluster> last;
    bool stopping = false;
  };
  void run();

  const EtcdOptions options_;
  const LogKeys keys_;
  const SteadyTime begun_;
  Guarded<State> state_;
  Condition wake_;
  Thread thread_;
};

// What the log costs this server, which leads.
console::LogCosts view_costs(const LogMember::Costs& costs);

// Once, from a host that need not lead: takes ClusterSurvey::kAwayAfter and what etcd takes.
console::Cluster survey_once(const EtcdOptions& options, const LogKeys& keys);

}  // namespace pnfsrdma::mds
