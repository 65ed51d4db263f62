// SPDX-License-Identifier: Apache-2.0
#include "server/mds/state/lock_waiters.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

namespace pnfsrdma::mds {

namespace {

// More than these ask again without being told.
constexpr size_t kWaitersMax = 4096;
// So many are told at once; the others ask again, too.
constexpr size_t kToldAtOnce = 128;

// The bytes of all of them, in order: ranges that have none in common.
std::vector<nfs4::LockRange> joined(std::span<const nfs4::LockRange> ranges) {
  std::vector<nfs4::LockRange> sorted(ranges.begin(), ranges.end());
  std::ranges::sort(sorted, {}, &nfs4::LockRange::first);
  std::vector<nfs4::LockRange> result;
  for (const nfs4::LockRange& range : sorted) {
    if (!result.empty() && range.first <= result.back().last)
      result.back().last = std::max(result.back().last, range.last);
    else
      result.push_back(range);
  }
  return result;
}

bool any_meets(const std::vector<nfs4::LockRange>& joined, const nfs4::LockRange& wanted) {
  const auto first = std::ranges::lower_bound(joined, wanted.first, {}, &nfs4::LockRange::last);
  return first != joined.end() && first->first <= wanted.last;
}

}  // namespace

LockWaiters::LockWaiters(const Clock& clock, LockTable& locks, CallbackChannel& callbacks,
                         Milliseconds patience)
    : clock_(clock), locks_(locks), callbacks_(callbacks), patience_(patience) {
  locks_.set_released(
      [this](uint64_t inode, std::span<const nfs4::LockRange> ranges) { look(inode, ranges); });
}

void LockWaiters::add(Waiter waiter) {
  Waiting fresh;
  static_cast<Waiter&>(fresh) = std::move(waiter);
  fresh.until = clock_.now() + patience_;
  fresh.number = next_number_++;
  if (Waiting* const known = by_owner_.find(fresh.client, fresh.inode, fresh.owner)) {
    fresh.number = known->number;
    drop(*known);
  }
  if (waiting_.size() >= kWaitersMax) forget_given_up();
  if (waiting_.size() >= kWaitersMax) return;
  Waiting& added = waiting_.emplace_back(std::move(fresh));
  added.place = std::prev(waiting_.end());
  by_owner_.insert(added);
  by_file_[added.inode].insert(added.wanted.first, added.wanted.last, &added);
}

void LockWaiters::drop(Waiting& waiting) {
  const auto file = by_file_.find(waiting.inode);
  file->second.erase(waiting.wanted.first, &waiting);
  if (file->second.empty()) by_file_.erase(file);
  by_owner_.erase(waiting);
  waiting_.erase(Queue::iterator(waiting.place));
}

void LockWaiters::forget_given_up() {
  const SteadyTime now = clock_.now();
  while (!waiting_.empty() && waiting_.front().until < now) drop(waiting_.front());
}

void LockWaiters::remove(ClientId client, uint64_t inode, ByteSpan owner) {
  if (Waiting* const known = by_owner_.find(client, inode, owner)) drop(*known);
}

// Only the first of those who exclude one another could have it: the others stay, for the next time.
void LockWaiters::look(uint64_t inode, std::span<const nfs4::LockRange> released) {
  const auto file = by_file_.find(inode);
  if (file == by_file_.end()) return;
  std::map<uint64_t, Waiting*> candidates;  // in the order in which they came
  // One look for all ranges: of many, each could find everybody.
  const std::vector<nfs4::LockRange> free_now = joined(released);
  const nfs4::LockRange span{free_now.front().first, free_now.back().last};
  file->second.visit(span.first, span.last, [&](Waiting* waiting, uint64_t, uint64_t) {
    if (any_meets(free_now, waiting->wanted)) candidates.emplace(waiting->number, waiting);
    return true;
  });
  RangeIndex<const Waiting*> promised;
  std::vector<Waiting*> told;
  const SteadyTime now = clock_.now();
  for (const auto& [number, waiting] : candidates) {
    const nfs4::LockRange& wanted = waiting->wanted;
    bool free = waiting->until >= now;
    if (free) {
      promised.visit(wanted.first, wanted.last, [&](const Waiting* other, uint64_t, uint64_t) {
        free = !other->wanted.exclusive && !wanted.exclusive;
        return free;
      });
    }
    if (!free || locks_.conflict(inode, wanted, waiting->client, waiting->owner)) continue;
    promised.insert(wanted.first, wanted.last, waiting);
    told.push_back(waiting);
    if (told.size() == kToldAtOnce) break;
    const bool takes_all = wanted.first <= span.first && span.last <= wanted.last;
    if (wanted.exclusive && takes_all) break;  // nothing is left
  }
  for (Waiting* const waiting : told) {
    tell(*waiting);
    drop(*waiting);
  }
}

void LockWaiters::tell(const Waiting& waiting) {
  nfs4::CallbackNotifyLockArguments arguments;
  arguments.file_handle = waiting.handle;
  arguments.lock_owner = {.client_id = waiting.client, .owner = nfs4::OwnerId(waiting.owner)};
  callbacks_.call(waiting.client, std::move(arguments), [](const CallbackChannel::Answer&) {});
}

}  // namespace pnfsrdma::mds
