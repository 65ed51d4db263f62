// SPDX-License-Identifier: Apache-2.0
#include "server/mds/state/slot.h"

#include <algorithm>

#include "shared/base/check.h"

namespace pnfsrdma::mds {

using nfs4::Status;

SlotTable::SlotTable(uint32_t slots)
    : slots_(slots), highest_at_start_(slots - 1), target_highest_(slots - 1) {
  CHECK(slots > 0);
}

// RFC 8881, 18.46.3. The seqid wraps through 0, so plain unsigned arithmetic is right.
std::expected<SlotTable::Verdict, Status> SlotTable::begin(uint32_t index, uint32_t seqid,
                                                           uint32_t highest_slot, uint64_t request_hash) {
  if (index >= slots_.size()) return std::unexpected(Status::kBadSlot);
  if (highest_slot < index || highest_slot >= slots_.size()) return std::unexpected(Status::kBadHighSlot);
  Slot& slot = slots_[index];
  if (seqid == slot.seqid && slot.in_progress) return std::unexpected(Status::kDelay);
  if (seqid == slot.seqid) {
    // A slot never used has nothing to replay: a hash is never 0.
    if (slot.request_hash == 0) return std::unexpected(Status::kSeqMisordered);
    if (slot.request_hash != request_hash) return std::unexpected(Status::kSeqFalseRetry);
    return slot.reply ? Verdict::kReplay : Verdict::kReplayUncached;
  }
  if (seqid != slot.seqid + 1 || slot.in_progress) return std::unexpected(Status::kSeqMisordered);
  slot.seqid = seqid;
  slot.in_progress = true;
  slot.reply.reset();
  slot.request_hash = request_hash;
  ++busy_;
  shrink(highest_slot);
  return Verdict::kNew;
}

void SlotTable::finish(uint32_t index, std::shared_ptr<const Bytes> reply) {
  CHECK(index < slots_.size() && slots_[index].in_progress);
  slots_[index].in_progress = false;
  slots_[index].reply = std::move(reply);
  --busy_;
}

void SlotTable::set_target_highest(uint32_t slot) {
  target_highest_ = std::min(slot, highest_at_start_);
  // Growing needs no agreement: the client learns of it from the next SEQUENCE.
  if (target_highest_ > highest()) slots_.resize(target_highest_ + 1);
}

void SlotTable::shrink(uint32_t highest_of_client) {
  if (highest_of_client > target_highest_) return;
  while (highest() > target_highest_ && !slots_.back().in_progress) slots_.pop_back();
}

}  // namespace pnfsrdma::mds
