// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "server/console/inventory.h"
#include "shared/base/clock.h"
#include "shared/base/lifetime.h"
#include "shared/base/result.h"

namespace pnfsrdma::mds {

// What takes long and was asked for by an administrator: numbered from 1, the newest hundred of this run.
// Control loop only.
class JobTable {
 public:
  explicit JobTable(const Clock& clock) : clock_(clock) {}

  // How a job tells how far it is; on_end is called once. Both may be called when the table has gone.
  struct Events {
    std::function<void(double progress, const std::string& message)> on_progress;
    std::function<void(Result<std::string> outcome)> on_end;
  };
  // Starts what `begin` starts, which gives back how to cancel it. EBUSY: a job of this kind works on this
  // subject already.
  using Begin = std::function<std::function<void()>(Events events)>;
  Result<console::Job> start(console::JobKind kind, const std::string& subject, const std::string& user,
                             const Begin& begin);
  // One that has ended stays as it is. ENOENT.
  Result<console::Job> cancel(uint64_t id);
  std::vector<console::Job> all() const;

 private:
  struct Entry {
    console::Job job;
    std::function<void()> cancel;
    bool cancelled = false;
  };
  void progress(uint64_t id, double progress, const std::string& message);
  void end(uint64_t id, const Result<std::string>& outcome);

  static constexpr size_t kKept = 100;
  const Clock& clock_;
  std::map<uint64_t, Entry> jobs_;
  uint64_t next_ = 1;
  Lifetime lifetime_;
};

}  // namespace pnfsrdma::mds
