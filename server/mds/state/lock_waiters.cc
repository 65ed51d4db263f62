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

LockWaiters::Queue::iterator LockWaiters::find(Queue& queue, ClientId client, ByteSpan owner) {
  return std::ranges::find_if(queue, [&](const Waiting& waiting) {
    return waiting.waiter.client == client && std::ranges::equal(waiting.waiter.owner, owner);
  });
}

void LockWaiters::add(Waiter waiter) {
  const SteadyTime until = clock_.now() + patience_;
  if (const auto file = waiting_.find(waiter.inode); file != waiting_.end()) {
    const auto known = find(file->second, waiter.client, waiter.owner);
    if (known != file->second.end()) {
      *known = {std::move(waiter), until};
      return;
    }
  }
  if (size_ >= kWaitersMax) forget_given_up();
  if (size_ >= kWaitersMax) return;
  Queue& queue = waiting_[waiter.inode];
  queue.push_back({std::move(waiter), until});
  ++size_;
}

void LockWaiters::forget_given_up() {
  const SteadyTime now = clock_.now();
  for (auto file = waiting_.begin(); file != waiting_.end();) {
    size_ -= std::erase_if(file->second, [now](const Waiting& waiting) { return waiting.until < now; });
    file = file->second.empty() ? waiting_.erase(file) : std::next(file);
  }
}

void LockWaiters::remove(ClientId client, uint64_t inode, ByteSpan owner) {
  const auto file = waiting_.find(inode);
  if (file == waiting_.end()) return;
  const auto known = find(file->second, client, owner);
  if (known == file->second.end()) return;
  file->second.erase(known);
  --size_;
  if (file->second.empty()) waiting_.erase(file);
}

// Only the first of those who exclude one another could have it: the others stay, for the next time.
void LockWaiters::look(uint64_t inode) {
  const auto file = waiting_.find(inode);
  if (file == waiting_.end()) return;
  nfs4::RangeLocks promised;
  const SteadyTime now = clock_.now();
  Queue& queue = file->second;
  for (auto at = queue.begin(); at != queue.end();) {
    const Waiter& waiter = at->waiter;
    const bool given_up = at->until < now;
    const bool free = !given_up && promised.conflict(waiter.wanted) == nullptr &&
                      !locks_.conflict(inode, waiter.wanted, waiter.client, waiter.owner);
    if (free) {
      promised.lock(waiter.wanted);
      nfs4::CallbackNotifyLockArguments arguments;
      arguments.file_handle = waiter.handle;
      arguments.lock_owner = {.client_id = waiter.client, .owner = nfs4::OwnerId(waiter.owner)};
      callbacks_.call(waiter.client, std::move(arguments), [](const CallbackChannel::Answer&) {});
    }
    if (free || given_up) --size_;
    at = free || given_up ? queue.erase(at) : std::next(at);
  }
  if (queue.empty()) waiting_.erase(file);
}

}  // namespace pnfsrdma::mds
