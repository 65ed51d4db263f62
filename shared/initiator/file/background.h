// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>

#include "shared/base/clock.h"
#include "shared/base/sync.h"

namespace pnfsrdma::initiator {

// One thread for what nobody waits for: prefetch of layouts and deferred LAYOUTCOMMITs, or layouts of closed
// files.
// Tasks may make wire calls. Thread-safe.
class Background {
 public:
  using Task = std::function<void()>;

  Background();
  // Runs nothing more; waits for the task that runs.
  ~Background();
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;

  void post(Task task) { after(Milliseconds(0), std::move(task)); }
  void after(Milliseconds delay, Task task);
  // Runs everything that is waiting, whether due or not, and returns when it is done (false: the deadline
  // passed).
  bool run_all(SteadyTime deadline);

 private:
  void run();

  Mutex mutex_;
  Condition changed_;
  std::multimap<SteadyTime, Task> tasks_;
  bool running_task_ = false;
  bool hurry_ = false;
  bool stopping_ = false;
  Thread thread_;
};

}  // namespace pnfsrdma::initiator
