// SPDX-License-Identifier: Apache-2.0
#include "shared/initiator/brick/replay_slots.h"

#include <algorithm>
#include <mutex>

namespace pnfsrdma::initiator {

std::optional<ReplaySlots::Held> ReplaySlots::take(SteadyTime deadline) {
  std::unique_lock lock(mutex_);
  auto slot = slots_.end();
  const auto found = [&] {
    slot = std::ranges::find_if(slots_, [](const Slot& each) { return !each.taken; });
    return slot != slots_.end();
  };
  if (!free_.wait_until(lock, deadline, found)) return std::nullopt;
  slot->taken = true;
  return Held(*this, static_cast<uint32_t>(slot - slots_.begin()), ++slot->sequence);
}

void ReplaySlots::give_back(uint32_t slot) {
  const std::lock_guard lock(mutex_);
  slots_[slot].taken = false;
  free_.notify_one();
}

}  // namespace pnfsrdma::initiator
