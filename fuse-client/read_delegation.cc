// SPDX-License-Identifier: Apache-2.0
#include "fuse-client/read_delegation.h"

#include <algorithm>

namespace pnfsrdma::fuse_client {

void ReadDelegation::take(const nfs4::Stateid& stateid, const Times& times,
                          const initiator::Credential& reader) {
  if (is(stateid) && !in_force()) return;
  held_ = Held{.stateid = stateid, .times = times, .first_reader = reader, .readers = {}};
  admit(reader, times.asked_at);
}

bool ReadDelegation::covers(SteadyTime asked_at) const {
  return in_force() && (asked_at == held_->times.asked_at || asked_at >= held_->times.answered_at);
}

void ReadDelegation::admit(const initiator::Credential& reader, SteadyTime asked_at) {
  if (!covers(asked_at) || asked_at <= rights_since_ || admits(reader)) return;
  if (held_->readers.size() < kReadersMax) held_->readers.push_back(reader);
}

bool ReadDelegation::admits(const initiator::Credential& reader) const {
  return in_force() && std::ranges::find(held_->readers, reader) != held_->readers.end();
}

void ReadDelegation::forget_readers(SteadyTime now) {
  rights_since_ = now;
  if (held_) held_->readers.clear();
}

bool ReadDelegation::end() {
  if (!in_force()) return false;
  held_->phase = Phase::kEnded;
  return true;
}

std::optional<ReadDelegation::ToReturn> ReadDelegation::begin_return() {
  if (!held_ || held_->phase != Phase::kEnded) return std::nullopt;
  held_->phase = Phase::kReturning;
  return ToReturn{held_->stateid, held_->first_reader};
}

void ReadDelegation::returned(const nfs4::Stateid& stateid) {
  if (is(stateid)) held_.reset();
}

}  // namespace pnfsrdma::fuse_client
