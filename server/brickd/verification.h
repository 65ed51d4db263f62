// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "server/brickd/exposures.h"
#include "server/brickd/flush_gate.h"
#include "shared/brick/session_messages.h"

namespace pnfsrdma::brick {

// Flushes ranges of one connection's client and tells the checksums of what is there then, read from as near to the
// medium as that can be. The data thread's.
class Verification {
 public:
  Verification(Exposures& exposures, FlushGate& gate) : exposures_(exposures), gate_(gate) {}

  // Refuses before it reads anything. May wait for a flush.
  VerifyReply verify(const VerifyCall& call);

 private:
  PersistStatus flush(const VerifyCall& call);
  // None: the grant has been withdrawn meanwhile.
  std::optional<uint32_t> checksum(const PersistTarget& target, bool& medium);

  Exposures& exposures_;
  FlushGate& gate_;
  std::vector<ByteSpan> ranges_;  // kept for its room
};

}  // namespace pnfsrdma::brick
