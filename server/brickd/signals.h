// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "server/brickd/exposures.h"
#include "server/brickd/flush_gate.h"
#include "server/brickd/watchers.h"
#include "shared/brick/session_messages.h"

namespace pnfsrdma::brick {

// Watches memory for one connection's client, and signals to all who do what its client has made durable: under its
// grants only. The data thread's.
class Signals {
 public:
  Signals(Exposures& exposures, FlushGate& gate, Watchers& watchers, EventInbox& inbox)
      : exposures_(exposures), gate_(gate), watchers_(watchers), inbox_(inbox) {}

  WatchReply watch(const WatchCall& call);
  // May wait for a flush, but for no other client.
  SignalReply signal(const SignalCall& call);

 private:
  WatchStatus begin(const WatchCall& call);
  SignalStatus check(const SignalCall& call);
  static std::vector<PersistTarget> merged(const SignalCall& call);
  SignalStatus tell(const SignalCall& call);

  Exposures& exposures_;
  FlushGate& gate_;
  Watchers& watchers_;
  EventInbox& inbox_;
  std::vector<ByteSpan> ranges_;  // kept for its room
};

}  // namespace pnfsrdma::brick
