// SPDX-License-Identifier: Apache-2.0
#include "server/console/sampler.h"

#include <algorithm>
#include <utility>

namespace pnfsrdma::console {

Sampler::~Sampler() {
  running_.lock()->stopping = true;
  stopped_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Sampler::start() {
  thread_ = Thread([this] {
    for (SteadyTime next = steady_now();;) {
      // A loop that is too busy is asked again in a second.
      static_cast<void>(sample());
      next = std::max(next + kEvery, steady_now());
      auto running = running_.lock();
      if (running.wait_until(stopped_, next, [](const Running& now) { return now.stopping; })) return;
    }
  });
}

Result<> Sampler::sample() {
  using Activities = Administration::Later<Activity>;
  TRY_ASSIGN(const Numbers numbers, loop_.call<Numbers>([this] { return administration_.numbers(); }));
  throughput_.add(numbers);
  TRY_ASSIGN(const Activities activity,
             loop_.ask<Activities>([this](auto done) { administration_.activity(std::move(done)); }));
  history_.add(numbers, activity());
  return {};
}

}  // namespace pnfsrdma::console
