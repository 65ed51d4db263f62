// SPDX-License-Identifier: Apache-2.0
#include "shared/initiator/session/slots.h"

#include <algorithm>
#include <utility>

#include "shared/base/check.h"

namespace pnfsrdma::initiator {

void SlotTable::reset(uint32_t count) {
  CHECK(count >= 1 && count <= kSlotsMax);
  std::erase_if(retired_, [](const auto& slot) { return slot->phase == Slot::Phase::kFree; });
  while (slots_.size() < count)
    slots_.push_back(std::make_unique<Slot>(static_cast<uint32_t>(slots_.size())));
  for (auto& slot : slots_) {
    if (slot->phase != Slot::Phase::kFree) {
      auto fresh = std::make_unique<Slot>(slot->id);
      fresh->rounds = slot->rounds;
      retired_.push_back(std::exchange(slot, std::move(fresh)));
    }
    slot->sequence = 1;
  }
  in_use_ = 0;
  usable_ = granted_ = count;
  ++session_;
}

Slot* SlotTable::take(bool urgent) {
  const bool keep_one = usable_ > 1 && !urgent;
  if (in_use_ + (keep_one ? 1 : 0) >= usable_) return nullptr;
  for (uint32_t id = 0; id < usable_; ++id) {
    Slot& slot = *slots_[id];
    if (slot.phase != Slot::Phase::kFree) continue;
    slot.phase = Slot::Phase::kBuilding;
    slot.abandoned = slot.posted = slot.voided = false;
    slot.transmissions = 0;
    slot.failure = 0;
    slot.session = session_;
    slot.xid = (++slot.rounds << kSlotBits) | id;
    ++in_use_;
    return &slot;
  }
  return nullptr;  // a slot above the limit is still busy
}

void SlotTable::give_back(Slot& slot, bool sequence_used) {
  CHECK(slot.phase != Slot::Phase::kFree);
  slot.phase = Slot::Phase::kFree;
  if (slot.session != session_) return;
  CHECK(in_use_ > 0);
  if (sequence_used) ++slot.sequence;
  --in_use_;
}

Slot* SlotTable::waiting_for(uint32_t xid) {
  const uint32_t id = xid & (kSlotsMax - 1);
  if (id >= slots_.size()) return nullptr;
  Slot& slot = *slots_[id];
  return slot.xid == xid && slot.phase == Slot::Phase::kSent ? &slot : nullptr;
}

Slot* SlotTable::unread() {
  for (const auto* slots : {&slots_, &retired_}) {
    for (const auto& slot : *slots) {
      if (slot->abandoned && slot->phase == Slot::Phase::kAnswered) return slot.get();
    }
  }
  return nullptr;
}

void SlotTable::limit_highest(uint32_t highest) {
  usable_ = std::clamp<uint32_t>(highest >= kSlotsMax ? kSlotsMax : highest + 1, 1, granted_);
}

uint32_t SlotTable::highest_in_use() const {
  for (size_t id = slots_.size(); id-- > 0;) {
    if (slots_[id]->phase != Slot::Phase::kFree) return static_cast<uint32_t>(id);
  }
  return 0;
}

}  // namespace pnfsrdma::initiator
