// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "server/mds/log/key_server.h"
#include "server/mds/log/log_keys.h"
#include "shared/base/clock.h"

namespace pnfsrdma::mds {

// A standby's row among the servers: how much of the log it has on its medium, so that the leader keeps the rest. It is
// put again and again, from one place, and by the leader, too: so a server that has the name of another one, and would
// share its row, finds out.
class LogPresence {
 public:
  // `server` outlives this.
  LogPresence(KeyServer& server, std::string key, std::string place);

  static constexpr Milliseconds kSayEvery{1000};
  // It is time to say().
  bool due(SteadyTime now) const { return now >= next_; }
  // The row is there, as this server has put it.
  bool is_said() const { return is_said_; }
  LogPosition said() const { return said_; }
  // EINVAL: another server says it, too. What the key server does not take is said again later.
  Result<> say(SteadyTime now, LogPosition durable);

 private:
  KeyServer& server_;
  const std::string key_;
  const std::string place_;
  KeyRevision revision_ = 0;
  int others_ = 0;  // rows of another place, one after the other
  bool is_said_ = false;
  LogPosition said_ = 0;
  SteadyTime next_{};
};

}  // namespace pnfsrdma::mds
