// SPDX-License-Identifier: Apache-2.0
#include "shared/initiator/file/lost_stateids.h"

#include <algorithm>

namespace pnfsrdma::initiator {

void LostStateids::add(const nfs4::Stateid& stateid) {
  std::lock_guard lock(mutex_);
  if (stateids_.size() >= kMax) stateids_.erase(stateids_.begin(), stateids_.begin() + kMax / 8);
  stateids_.push_back(stateid);
}

void LostStateids::remove(const nfs4::Stateid& stateid) {
  std::lock_guard lock(mutex_);
  std::erase_if(stateids_, [&](const nfs4::Stateid& lost) { return lost.other == stateid.other; });
}

void LostStateids::clear() {
  std::lock_guard lock(mutex_);
  stateids_.clear();
}

std::vector<nfs4::Stateid> LostStateids::all() const {
  std::lock_guard lock(mutex_);
  return stateids_;
}

}  // namespace pnfsrdma::initiator
