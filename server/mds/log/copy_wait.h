// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "server/mds/log/log_member.h"
#include "shared/base/event_loop.h"
#include "shared/base/result.h"

namespace pnfsrdma::mds {

// How a server waits until it has a copy of the leader's store. An end of the daemon instead would meet the limit that
// a service manager has for starts, and then it would stay away.
struct CopyWait {
  // Takes one from there, "https://host:port". Turns the loop, or does not take long. Errors as of begin_with_copy().
  std::function<Result<>(const std::string& from)> take;
  std::function<bool()> stopping;
  std::function<void(const std::string&)> status;  // for people
  bool pause_first = false;                        // the last one came too late
  Milliseconds pause{3000};                        // between tries

  // Behind an error of `member.lead()`, `why`, where LogMember::needs_copy(). Blocks, and turns the loop. False:
  // `stopping` said so. Errors: `why`, where who leads gives no copies; else those of `take` that do not pass.
  Result<bool> run(EventLoop& loop, LogMember& member, const Error& why) const;

 private:
  void wait(EventLoop& loop) const;
};

}  // namespace pnfsrdma::mds
