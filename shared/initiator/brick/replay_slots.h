// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <utility>

#include "shared/base/clock.h"
#include "shared/base/sync.h"
#include "shared/brick/session_messages.h"

namespace pnfsrdma::initiator {

// The slots of our session's record at one brick (brick::ChangeWordCall): each change of a word has one to
// itself, under a number that never comes again, until its outcome is known or nobody wants to know.
// Thread-safe.
class ReplaySlots {
 public:
  // One of them, with the number of this call.
  class Held {
   public:
    Held(Held&& other) noexcept
        : slots_(std::exchange(other.slots_, nullptr)), slot_(other.slot_), sequence_(other.sequence_) {}
    Held& operator=(Held&&) = delete;
    ~Held() {
      if (slots_ != nullptr) slots_->give_back(slot_);
    }
    uint32_t slot() const { return slot_; }
    uint64_t sequence() const { return sequence_; }

   private:
    friend class ReplaySlots;
    Held(ReplaySlots& slots, uint32_t slot, uint64_t sequence)
        : slots_(&slots), slot_(slot), sequence_(sequence) {}

    ReplaySlots* slots_;
    const uint32_t slot_;
    const uint64_t sequence_;
  };

  // Waits for one. None: `deadline` passed.
  std::optional<Held> take(SteadyTime deadline);

 private:
  struct Slot {
    uint64_t sequence = 0;
    bool taken = false;
  };
  void give_back(uint32_t slot);

  Mutex mutex_;
  Condition free_;
  std::array<Slot, brick::kReplaySlots> slots_;
};

}  // namespace pnfsrdma::initiator
