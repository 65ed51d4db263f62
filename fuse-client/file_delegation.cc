// SPDX-License-Identifier: Apache-2.0
#include "fuse-client/file_delegation.h"

#include <algorithm>

namespace pnfsrdma::fuse_client {

void FileDelegation::take(const Grant& grant) {
  if (is(grant.stateid) && !in_force()) return;
  held_ = Held{.grant = grant, .users = {}};
  admit(grant.opener, grant.allows, grant.times.asked_at);
}

bool FileDelegation::covers(SteadyTime asked_at) const {
  if (!in_force()) return false;
  const Times& times = held_->grant.times;
  return asked_at == times.asked_at || asked_at >= times.answered_at;
}

void FileDelegation::admit(const initiator::Credential& user, uint32_t share_access, SteadyTime asked_at) {
  if (!covers(asked_at) || asked_at <= rights_since_) return;
  const auto known = std::ranges::find(held_->users, user, &User::who);
  if (known != held_->users.end()) {
    known->share_access |= share_access;
  } else if (held_->users.size() < kUsersMax) {
    held_->users.push_back({user, share_access});
  }
}

bool FileDelegation::admits(const initiator::Credential& user, uint32_t share_access) const {
  if (!in_force() || (share_access & ~allows()) != 0) return false;
  const auto known = std::ranges::find(held_->users, user, &User::who);
  return known != held_->users.end() && (share_access & ~known->share_access) == 0;
}

void FileDelegation::forget_users(SteadyTime now) {
  rights_since_ = now;
  if (held_) held_->users.clear();
}

bool FileDelegation::end() {
  if (!in_force()) return false;
  held_->phase = Phase::kEnded;
  return true;
}

std::optional<FileDelegation::ToReturn> FileDelegation::to_write_by() const {
  if (!held_ || allows() != nfs4::kShareAccessBoth) return std::nullopt;
  return ToReturn{held_->grant.stateid, held_->grant.opener};
}

std::optional<FileDelegation::ToReturn> FileDelegation::begin_return() {
  if (!held_ || held_->phase != Phase::kEnded) return std::nullopt;
  held_->phase = Phase::kReturning;
  return ToReturn{held_->grant.stateid, held_->grant.opener};
}

bool FileDelegation::returned(const nfs4::Stateid& stateid) {
  if (is(stateid)) held_.reset();
  if (!held_ || held_->phase != Phase::kReturning) return false;
  held_->phase = Phase::kEnded;
  return true;
}

void FileDelegation::reclaimed(const nfs4::Stateid& stateid) {
  if (held_) held_->grant.stateid = stateid;
}

}  // namespace pnfsrdma::fuse_client
