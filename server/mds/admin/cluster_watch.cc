// SPDX-License-Identifier: Apache-2.0
#include "server/mds/admin/cluster_watch.h"

#include <utility>

#include "server/mds/admin/numbers_view.h"

namespace pnfsrdma::mds {
namespace {

constexpr Milliseconds kLookEvery{1000};
constexpr Milliseconds kPatience{1000};

// The end of the daemon waits for a look.
EtcdOptions impatient(EtcdOptions options) {
  options.patience = kPatience;
  return options;
}

}  // namespace

Result<std::vector<console::ClusterMember>> ask_members(EtcdClient& client, const EtcdOptions& options) {
  auto members = client.members();
  // The client goes to the next one by itself.
  for (size_t i = 1; !members && i < options.endpoints.size(); ++i) members = client.members();
  if (!members) return std::unexpected(members.error());
  std::vector<console::ClusterMember> asked;
  for (const EtcdMember& member : *members) {
    console::ClusterMember one{.id = member.id, .name = member.name};
    if (!member.addresses.empty()) {
      one.address = member.addresses.front();
      EtcdOptions alone = options;
      alone.endpoints = {one.address};
      if (const auto state = EtcdClient(alone).state()) {
        one.answers = true;
        one.leads = state->leads;
        one.version = state->version;
        one.database_bytes = state->database_bytes;
      }
    }
    asked.push_back(std::move(one));
  }
  return asked;
}

ClusterWatch::ClusterWatch(const EtcdOptions& options, LogKeys keys)
    : options_(impatient(options)), keys_(std::move(keys)), begun_(steady_now()), state_(State{}) {
  thread_ = Thread([this] { run(); });
}

ClusterWatch::~ClusterWatch() {
  state_.lock()->stopping = true;
  wake_.notify_one();
  thread_.join();
}

std::optional<console::Cluster> ClusterWatch::last() {
  return state_.lock()->last;
}

void ClusterWatch::run() {
  EtcdClient client(options_);
  ClusterSurvey survey(client, keys_, [&] { return ask_members(client, options_); });
  for (;;) {
    const SteadyTime now = steady_now();
    console::Cluster cluster = survey.look(now);
    cluster.leading_seconds =
        static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::seconds>(now - begun_).count());
    auto state = state_.lock();
    state->last = std::move(cluster);
    if (state.wait_until(wake_, now + kLookEvery, [](const State& is) { return is.stopping; })) return;
  }
}

console::LogCosts view_costs(const LogMember::Costs& costs) {
  return {.commits = view_histogram(costs.commits),
          .bytes = costs.bytes,
          .checkpoint = costs.checkpoint,
          .checkpoint_seconds = static_cast<uint64_t>(costs.checkpoint_age.count()) / 1000};
}

console::Cluster survey_once(const EtcdOptions& options, const LogKeys& keys) {
  EtcdClient client(options);
  ClusterSurvey survey(client, keys, [&] { return ask_members(client, options); });
  survey.look(steady_now());
  sleep_for(ClusterSurvey::kAwayAfter);
  return survey.look(steady_now());
}

}  // namespace pnfsrdma::mds
