// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "server/mds/state/delegation_table.h"
#include "shared/base/bytes.h"
#include "shared/base/clock.h"

namespace pnfsrdma::mds {

// The grace period after a reboot of the host (RFC 8881, 8.4.2): only clients that had state may reclaim,
// nobody may make new state. It ends with the time given, or as soon as the last of them has said
// RECLAIM_COMPLETE. Reclaims that arrive near its end carry it on, to twice its time at most: a client with
// many opens does not lose those it had not come to. Control loop only.
class GracePeriod {
 public:
  explicit GracePeriod(const Clock& clock) : clock_(clock) {}

  // `owners`: co_ownerid of every client with state before the reboot. None: there is no grace period.
  // `ended` is called from whatever call first sees the end, which it puts on record; false: it cannot now. Then the
  // period goes on, and the next call that asks for it asks again.
  void begin(const std::vector<Bytes>& owners, Milliseconds longest, std::function<bool()> ended);

  bool active();
  // What is left at most; 0 when it does not run.
  uint64_t seconds_left();
  // A reclaim has come: the next one is waited for.
  void reclaiming();
  bool may_reclaim(ByteSpan owner) { return active() && owners_.contains(as_text(owner)); }
  void reclaimed(ByteSpan owner);
  // Before begin(). A delegation that the owner held when the host went down: no other one can be reclaimed, so none
  // that was revoked.
  void remember_delegation(ByteSpan owner, uint64_t inode, DelegationKind kind);
  bool may_reclaim_delegation(ByteSpan owner, uint64_t inode, DelegationKind kind);
  // Another one than this owner has not come back yet: files may be delegated to him. (Of one to read that was given
  // right before the host went down there may be no record.)
  bool waits_for_others(ByteSpan owner);

 private:
  void end();

  const Clock& clock_;
  bool running_ = false;
  SteadyTime deadline_;
  SteadyTime bound_;  // of the deadline
  Milliseconds patience_{};
  std::set<std::string, std::less<>> owners_;
  // Ends in one turn, however many they are: a list for each owner, in order behind begin().
  using Delegated = std::pair<uint64_t, DelegationKind>;
  std::map<std::string, std::vector<Delegated>, std::less<>> delegations_;
  std::function<bool()> ended_;
};

}  // namespace pnfsrdma::mds
