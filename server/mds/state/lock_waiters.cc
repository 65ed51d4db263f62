// SPDX-License-Identifier: Apache-2.0
#include "server/mds/state/lock_waiters.h"

#include <algorithm>

namespace pnfsrdma::mds {

namespace {

// More than these ask again without being told.
constexpr size_t kWaitersMax = 4096;

}  // namespace

LockWaiters::LockWaiters(const Clock& clock, LockTable& locks, CallbackChannel& callbacks,
                         Milliseconds patience)
    : clock_(clock), locks_(locks), callbacks_(callbacks), patience_(patience) {
  locks_.set_released([this](uint64_t inode) { look(inode); });
}

std::list<LockWaiters::Waiting>::iterator LockWaiters::find(ClientId client, uint64_t inode, ByteSpan owner) {
  return std::ranges::find_if(waiting_, [&](const Waiting& waiting) {
    const Waiter& waiter = waiting.waiter;
    return waiter.client == client && waiter.inode == inode && std::ranges::equal(waiter.owner, owner);
  });
}

void LockWaiters::add(Waiter waiter) {
  const SteadyTime until = clock_.now() + patience_;
  const auto known = find(waiter.client, waiter.inode, waiter.owner);
  if (known != waiting_.end()) {
    *known = {std::move(waiter), until};
    return;
  }
  if (waiting_.size() >= kWaitersMax) {
    std::erase_if(waiting_, [now = clock_.now()](const Waiting& waiting) { return waiting.until < now; });
  }
  if (waiting_.size() < kWaitersMax) waiting_.push_back({std::move(waiter), until});
}

void LockWaiters::remove(ClientId client, uint64_t inode, ByteSpan owner) {
  const auto known = find(client, inode, owner);
  if (known != waiting_.end()) waiting_.erase(known);
}

// Only the first of those who exclude one another could have it: the others stay, for the next time.
void LockWaiters::look(uint64_t inode) {
  if (waiting_.empty()) return;
  nfs4::RangeLocks promised;
  const SteadyTime now = clock_.now();
  for (auto at = waiting_.begin(); at != waiting_.end();) {
    const Waiter& waiter = at->waiter;
    const bool given_up = at->until < now;
    const bool free = waiter.inode == inode && !given_up && promised.conflict(waiter.wanted) == nullptr &&
                      !locks_.conflict(inode, waiter.wanted, waiter.client, waiter.owner);
    if (free) {
      promised.lock(waiter.wanted);
      nfs4::CallbackNotifyLockArguments arguments;
      arguments.file_handle = waiter.handle;
      arguments.lock_owner = {.client_id = waiter.client, .owner = nfs4::OwnerId(waiter.owner)};
      callbacks_.call(waiter.client, std::move(arguments), [](const CallbackChannel::Answer&) {});
    }
    at = free || given_up ? waiting_.erase(at) : std::next(at);
  }
}

}  // namespace pnfsrdma::mds
