// SPDX-License-Identifier: Apache-2.0
#include "server/mds/log/leadership.h"

#include <algorithm>

#include "shared/base/sync.h"

namespace pnfsrdma::mds {

LeadClaim LeadClaim::parse(std::string_view text) {
  LeadClaim claim;
  for (std::string* field : {&claim.name, &claim.start, &claim.place, &claim.copies}) {
    const size_t end = std::min(text.find('\n'), text.size());
    *field = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return claim;
}

void LeadTerm::renewed(SteadyTime sent) {
  ends_.store((sent + kLeadTime).time_since_epoch().count(), std::memory_order_release);
}

bool LeadTerm::holds() const {
  return clock_.now().time_since_epoch().count() < ends_.load(std::memory_order_acquire);
}

void LeadWatch::saw(Seen seen, SteadyTime now) {
  if (!any_ || seen.leader != seen_.leader || seen.renewal != seen_.renewal) changed_ = now;
  any_ = true;
  seen_ = std::move(seen);
}

bool LeadWatch::may_take(SteadyTime now) const {
  if (!any_) return false;
  if (seen_.leader == 0) return true;
  if (seen_.claim.place == place_) return true;
  return now - changed_ >= kLeadTime + kClockDrift;
}

SteadyTime BootClock::now() const {
  return steady_now() + std::chrono::duration_cast<SteadyTime::duration>(slept_so_far());
}

WallTime BootClock::wall_now() const {
  return SystemClock().wall_now();
}

}  // namespace pnfsrdma::mds
