// SPDX-License-Identifier: Apache-2.0
#include "shared/initiator/file/growth_room.h"

#include <algorithm>

#include "shared/base/log.h"
#include "shared/initiator/cancellation.h"

namespace pnfsrdma::initiator {

namespace {

// A write that waits this long for room is one that somebody asks about.
constexpr Milliseconds kLongWait{1000};

}  // namespace

std::optional<KeptWrites::Room> GrowthRoom::room_for_copy(const LayoutPin& pin) {
  const uint64_t end = pin.offset + pin.length;
  const uint64_t from = std::max(pin.offset, pin.known_size);
  return from < end ? file_.kept.set_aside(from, end - from) : KeptWrites::Room();
}

bool GrowthRoom::make_room() {
  // An error comes up again where the application asks for it: at its fsync or close.
  if (file_.kept.any()) return committer_.commit_now().has_value();
  all_files_.commit_growth();
  const SteadyTime began = file_.fabric.now();
  const SteadyTime deadline = file_.fabric.io_deadline();
  KeptMemory& memory = kept_memory_;
  while (!memory.wait_for_room(std::min(deadline, file_.fabric.now() + Milliseconds(100)))) {
    if (file_.fabric.aborted || CancellationScope::cancelled() || file_.fabric.now() >= deadline)
      return false;
    if (file_.fabric.now() - began >= kLongWait && !told_.room_short.exchange(true)) {
      log_warning(
          "initiator",
          "growth-waits used={} limit={}: writes that extend files wait until the server has accepted "
          "earlier growth (LAYOUTCOMMIT)",
          memory.used(), memory.limit());
    }
  }
  if (told_.room_short.exchange(false)) log_info("initiator", "growth-goes-on");
  return true;
}

void GrowthRoom::commit_early() {
  const uint64_t used = kept_memory_.used();
  if (used < kept_memory_.limit() / 2) return;
  if (file_.kept.bytes() >= used / 4) return committer_.start_commit();
  all_files_.commit_growth_soon();
}

}  // namespace pnfsrdma::initiator
