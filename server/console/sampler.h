// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "server/console/administration.h"
#include "server/console/control_loop.h"
#include "server/console/history.h"
#include "server/console/throughput.h"
#include "shared/base/guarded.h"
#include "shared/base/sync.h"

namespace pnfsrdma::console {

// Once a second a thread asks the control loop for its counters and adds them to what is kept of them: with thousands
// of clients that is work for many milliseconds, which the loop must not wait for. Where the loop does not answer a
// second is left out, and the next one covers both.
class Sampler {
 public:
  Sampler(ControlLoop& loop, Administration& administration, Throughput& throughput, History& history)
      : loop_(loop), administration_(administration), throughput_(throughput), history_(history) {}
  // Waits for the thread: ControlLoop::stop() comes first.
  ~Sampler();
  Sampler(const Sampler&) = delete;
  Sampler& operator=(const Sampler&) = delete;

  // The first time at once.
  void start();
  // Once, by whoever calls. EAGAIN, ETIMEDOUT: as ControlLoop::ask().
  Result<> sample();

 private:
  static constexpr Milliseconds kEvery{1000};
  struct Running {
    bool stopping = false;
  };

  ControlLoop& loop_;
  Administration& administration_;  // in the loop only
  Throughput& throughput_;
  History& history_;
  Guarded<Running> running_;
  Condition stopped_;
  Thread thread_;
};

}  // namespace pnfsrdma::console
