// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <functional>
#include <memory>

#include "shared/base/sync.h"
#include "tests/sim/dice.h"
#include "tests/sim/scheduler.h"

namespace pnfsrdma::sim {

// Carries what somebody says one way, in order and with seeded delays, on a fiber that no host's death ends.
class Courier {
 public:
  explicit Courier(uint64_t seed) : inside_(std::make_shared<Inside>(seed)) {
    const simulated::Scheduler::OnHost on_host(0);
    simulated::Thread([inside = inside_] { work(*inside); });
  }
  // What has been sent arrives.
  ~Courier() {
    inside_->ending = true;
    inside_->changed.ring();
  }
  Courier(const Courier&) = delete;
  Courier& operator=(const Courier&) = delete;

  void send(std::function<void()> job) {
    const auto delay = inside_->dice.one_in(30) ? inside_->dice.microseconds(500, 10000)
                                                : inside_->dice.microseconds(10, 150);
    SteadyTime due = steady_now() + delay;
    if (!inside_->jobs.empty()) due = std::max(due, inside_->jobs.back().first);
    inside_->jobs.emplace_back(due, std::move(job));
    inside_->changed.ring();
  }

 private:
  struct Inside {
    explicit Inside(uint64_t seed) : dice(seed) {}
    Dice dice;
    std::deque<std::pair<SteadyTime, std::function<void()>>> jobs;
    simulated::Bell changed;
    bool ending = false;
  };
  static void work(Inside& inside) {
    while (!inside.ending || !inside.jobs.empty()) {
      if (inside.jobs.empty() || inside.jobs.front().first > steady_now()) {
        (void)inside.changed.wait(inside.jobs.empty() ? SteadyTime::max() : inside.jobs.front().first,
                                  "something to carry");
        continue;
      }
      const auto job = std::move(inside.jobs.front().second);
      inside.jobs.pop_front();
      job();
    }
  }

  std::shared_ptr<Inside> inside_;
};

}  // namespace pnfsrdma::sim
