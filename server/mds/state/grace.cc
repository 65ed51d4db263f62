// SPDX-License-Identifier: Apache-2.0
#include "server/mds/state/grace.h"

#include <algorithm>
#include <utility>

#include "shared/base/log.h"

namespace pnfsrdma::mds {

namespace {

constexpr int kShareWaited = 4;  // of the grace period: so long after a reclaim the next one may come

}  // namespace

void GracePeriod::begin(const std::vector<Bytes>& owners, Milliseconds longest, std::function<bool()> ended) {
  ended_ = std::move(ended);
  for (const Bytes& owner : owners) owners_.emplace(as_text(owner));
  for (auto& [owner, delegated] : delegations_) std::ranges::sort(delegated);
  running_ = true;
  deadline_ = clock_.now() + longest;
  bound_ = deadline_ + longest;
  patience_ = longest / kShareWaited;
  if (owners_.empty()) return end();
  log_info("mds", "grace-began clients={} longest_ms={}", owners_.size(), longest.count());
}

bool GracePeriod::active() {
  if (running_ && (owners_.empty() || clock_.now() >= deadline_)) end();
  return running_;
}

uint64_t GracePeriod::seconds_left() {
  if (!active()) return 0;
  const auto left = std::chrono::ceil<std::chrono::seconds>(deadline_ - clock_.now());
  return static_cast<uint64_t>(std::max<int64_t>(left.count(), 1));
}

void GracePeriod::reclaiming() {
  if (active()) deadline_ = std::max(deadline_, std::min(bound_, clock_.now() + patience_));
}

void GracePeriod::reclaimed(ByteSpan owner) {
  const auto found = owners_.find(as_text(owner));
  if (found == owners_.end()) return;
  owners_.erase(found);
  if (running_ && owners_.empty()) end();
}

void GracePeriod::remember_delegation(ByteSpan owner, uint64_t inode, DelegationKind kind) {
  delegations_[std::string(as_text(owner))].emplace_back(inode, kind);
}

bool GracePeriod::may_reclaim_delegation(ByteSpan owner, uint64_t inode, DelegationKind kind) {
  if (!active()) return false;
  const auto held = delegations_.find(as_text(owner));
  return held != delegations_.end() && std::ranges::binary_search(held->second, Delegated(inode, kind));
}

bool GracePeriod::waits_for_others(ByteSpan owner) {
  return active() && owners_.size() > (owners_.contains(as_text(owner)) ? 1U : 0U);
}

void GracePeriod::end() {
  if (ended_ && !ended_()) return;
  if (!owners_.empty()) log_warning("mds", "grace-ended not_reclaimed={}", owners_.size());
  running_ = false;
  owners_.clear();
  delegations_.clear();
  ended_ = nullptr;
}

}  // namespace pnfsrdma::mds
