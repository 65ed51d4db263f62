// SPDX-License-Identifier: Apache-2.0
#include "server/brickd/replay_record.h"

namespace pnfsrdma::brick {
namespace {

bool same(const ChangeWordCall& one, const ChangeWordCall& other) {
  return one.change == other.change && one.grant == other.grant && one.offset == other.offset &&
         one.operand == other.operand && one.expected == other.expected;
}

}  // namespace

ReplayRecord::Outcome ReplayRecord::once(const ChangeWordCall& call, const std::function<Outcome()>& make) {
  if (call.record != number_ || call.slot >= kReplaySlots || call.sequence == 0)
    return std::unexpected(WordStatus::kForgotten);
  auto slots = slots_.lock();
  Slot& slot = (*slots)[call.slot];
  if (call.sequence == slot.call.sequence && same(call, slot.call)) return slot.change;
  if (call.sequence <= slot.call.sequence) return std::unexpected(WordStatus::kForgotten);
  Outcome made = make();
  if (made) slot = {call, *made};
  return made;
}

}  // namespace pnfsrdma::brick
