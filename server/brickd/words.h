// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "server/brickd/exposures.h"
#include "server/brickd/flush_gate.h"
#include "server/brickd/replay_record.h"
#include "shared/brick/session_messages.h"

namespace pnfsrdma::brick {

// Changes words in the name of one connection's client: by the processor, so that all changes of a word, whoever's,
// come one after the other. No allocation, at most one flush. The data thread's.
class Words {
 public:
  Words(Exposures& exposures, FlushGate& gate, std::shared_ptr<ReplayRecord> record)
      : exposures_(exposures), gate_(gate), record_(std::move(record)) {}

  // May wait for a flush.
  ChangeWordReply change(const ChangeWordCall& call);

 private:
  ReplayRecord::Outcome make(const ChangeWordCall& call);

  Exposures& exposures_;
  FlushGate& gate_;
  const std::shared_ptr<ReplayRecord> record_;
};

}  // namespace pnfsrdma::brick
