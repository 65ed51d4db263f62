// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <expected>
#include <functional>

#include "server/brickd/flush_gate.h"
#include "shared/base/guarded.h"
#include "shared/brick/session_messages.h"

namespace pnfsrdma::brick {

// The last change of a word in each slot of one session, so that a call that comes again over the next connection is
// answered, not made again. It lives as long as the session: behind that nobody can know, and its number tells the
// client so. Thread-safe: a connection that ends and the next one may be here at once.
class ReplayRecord {
 public:
  // What a change has found, and where; the verifier of before it.
  struct Change {
    uint64_t before = 0;
    ByteSpan word;
    Verifier verifier{};
  };
  using Outcome = std::expected<Change, WordStatus>;

  // `number`: no other record ever has it.
  explicit ReplayRecord(uint64_t number) : number_(number) {}

  uint64_t number() const { return number_; }
  // What `make` has returned for this call, now or when it came first. What was not made is not noted. `make` must not
  // wait. Errors: what it says, kForgotten.
  Outcome once(const ChangeWordCall& call, const std::function<Outcome()>& make);

 private:
  struct Slot {
    ChangeWordCall call;  // sequence 0: none yet
    Change change;
  };

  const uint64_t number_;
  Guarded<std::array<Slot, kReplaySlots>> slots_;
};

}  // namespace pnfsrdma::brick
