// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/log/model_etcd.h"

#include <algorithm>
#include <cerrno>
#include <optional>

namespace pnfsrdma::sim {
namespace {

constexpr Milliseconds kPatience{1500};  // EtcdOptions::patience
constexpr Milliseconds kElection{100};

SteadyTime look() {
  return simulated::Scheduler::current().look();
}

}  // namespace

SteadyTime ServerClock::now() const {
  rest();
  const double passed = static_cast<double>(look().time_since_epoch().count()) * rate_;
  return SteadyTime(SteadyTime::duration(static_cast<SteadyTime::rep>(passed))) + ahead_;
}

void ServerClock::rest() const {
  while (!looked_at_ && look() < paused_until_) simulated::sleep_until(paused_until_);
}

// What was asked may be done when the connection, and who had it, are no more.
class ModelEtcd::Connection final : public mds::KeyServer {
 public:
  Connection(ModelEtcd& etcd, size_t server, const ServerClock& clock)
      : etcd_(etcd), server_(server), clock_(clock) {}

  Result<mds::KeyOutcome> commit(const mds::KeyTransaction& transaction) override {
    return ask<mds::KeyOutcome>([&etcd = etcd_, transaction] { return etcd.rows_.commit(transaction); });
  }
  Result<std::vector<mds::KeyRow>> range(std::string_view from, std::string_view end, size_t limit) override {
    return ask<std::vector<mds::KeyRow>>([&etcd = etcd_, from = std::string(from), end = std::string(end),
                                          limit] { return etcd.rows_.range(from, end, limit); });
  }
  Result<mds::KeyRevision> erase(std::string_view from, std::string_view end) override {
    return ask<mds::KeyRevision>([&etcd = etcd_, from = std::string(from), end = std::string(end)] {
      return etcd.rows_.erase(std::string_view(from), std::string_view(end));
    });
  }
  Result<> forget(mds::KeyRevision) override {
    TRY(ask<bool>([] { return true; }));
    return {};
  }

 private:
  template <typename T>
  struct Call {
    std::optional<Result<T>> answer;
    simulated::Bell came;
  };

  template <typename T>
  Result<T> ask(std::function<Result<T>()> work) {
    clock_.rest();
    const auto call = std::make_shared<Call<T>>();
    const bool is_cut = etcd_.cut_.contains(server_);
    const bool troubled = etcd_.troubled_ || is_cut;
    const bool lost = is_cut ? etcd_.dice_.one_in(2) : troubled && etcd_.dice_.one_in(20);
    const bool answers = is_cut ? etcd_.dice_.one_in(4) : !(troubled && etcd_.dice_.one_in(10));
    const SteadyTime::duration way_back = is_cut ? etcd_.dice_.microseconds(0, 1'400'000) : etcd_.delay();
    auto arrives = look() + etcd_.delay();
    if (troubled && etcd_.dice_.one_in(10)) arrives += etcd_.dice_.microseconds(0, 9'000'000);
    if (!lost) {
      etcd_.later(arrives, [call, work = std::move(work), answers, way_back, &etcd = etcd_] {
        etcd.arrive([call, work, answers, way_back, &etcd] {
          const auto outcome = work();
          if (!answers) return;
          etcd.later(look() + way_back, [call, outcome] {
            call->answer = outcome;
            call->came.ring();
          });
        });
      });
    }
    const SteadyTime end = look() + kPatience;
    while (!call->answer && look() < end) (void)call->came.wait(end, "an answer of etcd");
    const bool answered = call->answer.has_value();
    clock_.rest();
    if (!answered) return fail(EIO, "etcd does not answer");
    return *call->answer;
  }

  ModelEtcd& etcd_;
  const size_t server_;
  const ServerClock& clock_;
};

mds::ConnectKeyServer ModelEtcd::connector(size_t server, const ServerClock& clock) {
  return [this, server, &clock] { return std::make_unique<Connection>(*this, server, clock); };
}

void ModelEtcd::run() {
  for (;;) {
    while (events_.empty() || events_.begin()->first > look()) {
      (void)news_.wait(events_.empty() ? SteadyTime::max() : events_.begin()->first, "a request to etcd");
    }
    const Work work = std::move(events_.begin()->second);
    events_.erase(events_.begin());
    work();
  }
}

void ModelEtcd::heal() {
  cut_.clear();
  quorum_lost_ = troubled_ = false;
}

void ModelEtcd::later(SteadyTime time, Work work) {
  events_.emplace(time, std::move(work));
  news_.ring();
}

// Without a quorum it waits there, and is forgotten or done when there is one again.
void ModelEtcd::arrive(const Work& work) {
  if (!quorum_lost_) return work();
  if (!dice_.one_in(20)) later(look() + kElection, [this, work] { arrive(work); });
}

SteadyTime::duration ModelEtcd::delay() {
  return troubled_ && dice_.one_in(15) ? dice_.microseconds(1000, 1'200'000) : dice_.microseconds(100, 2000);
}

}  // namespace pnfsrdma::sim
