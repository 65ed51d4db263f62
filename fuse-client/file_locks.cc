// SPDX-License-Identifier: Apache-2.0
#include "fuse-client/file_locks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include "shared/base/check.h"
#include "shared/initiator/cancellation.h"

namespace pnfsrdma::fuse_client {

nfs4::OwnerId LockOwner::name() const {
  return nfs4::OwnerId(as_bytes(fmt::format("{}-{:016x}", kind == Kind::kPosix ? "posix" : "flock", number)));
}

bool FileLocks::begin(LockOwner owner) {
  std::unique_lock lock(mutex_);
  while (entries_[owner].busy) {
    if (initiator::CancellationScope::cancelled()) return false;
    changed_.wait_for(lock, std::chrono::seconds(1));
  }
  entries_[owner].busy = true;
  return true;
}

void FileLocks::end(LockOwner owner) {
  {
    const std::lock_guard lock(mutex_);
    CHECK(entries_[owner].busy);
    entries_[owner].busy = false;
    drop_if_empty(owner);
  }
  changed_.notify_all();
}

void FileLocks::drop_if_empty(LockOwner owner) {
  const auto found = entries_.find(owner);
  if (found == entries_.end() || found->second.busy) return;
  const Held& held = found->second.held;
  if (!held.stateid && held.ranges.empty() && !held.doubtful && !held.lost) entries_.erase(found);
}

FileLocks::Held FileLocks::held(LockOwner owner) const {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(owner);
  return found == entries_.end() ? Held{} : found->second.held;
}

bool FileLocks::has(LockOwner owner) const {
  const std::lock_guard lock(mutex_);
  return entries_.contains(owner);
}

bool FileLocks::any() const {
  const std::lock_guard lock(mutex_);
  return are_here_ || any_at_server();
}

void FileLocks::keep(LockOwner owner, Held held) {
  const std::lock_guard lock(mutex_);
  entries_[owner].held = std::move(held);
  count_lost();
}

void FileLocks::forget(LockOwner owner) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(owner);
  if (found == entries_.end()) return;
  found->second.held = {};
  drop_if_empty(owner);
  count_lost();
}

void FileLocks::clear() {
  const std::lock_guard lock(mutex_);
  for (auto& [owner, entry] : entries_) entry.held = {};
  std::erase_if(entries_, [](const auto& entry) { return !entry.second.busy; });
  are_here_ = false;
  count_lost();
}

void FileLocks::count_lost() {
  lost_ = static_cast<uint32_t>(
      std::ranges::count_if(entries_, [](const auto& entry) { return entry.second.held.lost; }));
}

std::vector<LockOwner> FileLocks::owners() const {
  const std::lock_guard lock(mutex_);
  std::vector<LockOwner> owners;
  for (const auto& [owner, entry] : entries_) {
    if (entry.held.stateid) owners.push_back(owner);
  }
  return owners;
}

std::vector<LockOwner> FileLocks::owners_by(uint64_t open_file) const {
  const std::lock_guard lock(mutex_);
  std::vector<LockOwner> owners;
  for (const auto& [owner, entry] : entries_) {
    const Held& held = entry.held;
    const bool any = held.stateid || !held.ranges.empty() || held.doubtful || held.lost;
    if (any && held.open_file == open_file) owners.push_back(owner);
  }
  return owners;
}

pid_t FileLocks::process_of(const nfs4::OwnerId& name) const {
  const std::lock_guard lock(mutex_);
  const auto found =
      std::ranges::find_if(entries_, [&](const auto& entry) { return entry.first.name() == name; });
  return found == entries_.end() ? 0 : found->second.held.process;
}

bool FileLocks::any_at_server() const {
  if (are_here_) return false;
  return asked_for_ > 0 || std::ranges::any_of(entries_, [](const auto& entry) {
           const Held& held = entry.second.held;
           return !held.ranges.empty() || held.doubtful || held.lost;
         });
}

std::optional<FileLocks::InTheWay> FileLocks::find_in_the_way(LockOwner owner,
                                                              const nfs4::LockRange& range) const {
  for (const auto& [other, entry] : entries_) {
    if (other == owner) continue;
    if (const nfs4::LockRange* held = entry.held.ranges.conflict(range)) return InTheWay{other, *held};
  }
  return std::nullopt;
}

size_t FileLocks::ranges_but_of(LockOwner owner) const {
  size_t count = 0;
  for (const auto& [other, entry] : entries_) count += other == owner ? 0 : entry.held.ranges.all().size();
  return count;
}

FileLocks::Verdict FileLocks::lock_here(LockOwner owner, const nfs4::LockRange& range, const Held& asker) {
  const std::lock_guard lock(mutex_);
  if (handing_over_) return Verdict::kWait;
  if (any_at_server()) {
    ++asked_for_;
    return Verdict::kAskServer;
  }
  if (find_in_the_way(owner, range)) return Verdict::kInTheWay;
  nfs4::RangeLocks ranges = entries_[owner].held.ranges;
  ranges.lock(range);
  if (ranges.all().size() + ranges_but_of(owner) > kRangesHereMax) return Verdict::kTooMany;
  are_here_ = true;
  Held& held = entries_[owner].held;
  held.ranges = std::move(ranges);
  held.credential = asker.credential;
  held.process = asker.process;
  held.open_file = asker.open_file;
  return Verdict::kGiven;
}

FileLocks::Verdict FileLocks::lock_at_server() {
  const std::lock_guard lock(mutex_);
  if (are_here_) return Verdict::kWait;
  ++asked_for_;
  return Verdict::kAskServer;
}

void FileLocks::asked_server() {
  const std::lock_guard lock(mutex_);
  CHECK(asked_for_ > 0);
  --asked_for_;
}

Result<FileLocks::Verdict> FileLocks::unlock_here(LockOwner owner, const nfs4::LockRange& range) {
  std::unique_lock lock(mutex_);
  while (handing_over_) {
    if (initiator::CancellationScope::cancelled()) return fail(EINTR, "LOCKU");
    changed_.wait_for(lock, std::chrono::seconds(1));
  }
  if (!are_here_) return Verdict::kAskServer;
  if (const auto found = entries_.find(owner); found != entries_.end()) {
    nfs4::RangeLocks ranges = found->second.held.ranges;
    ranges.unlock(range);
    const bool more = ranges.all().size() > found->second.held.ranges.all().size();
    if (more && ranges.all().size() + ranges_but_of(owner) > kRangesHereMax) return Verdict::kTooMany;
    found->second.held.ranges = std::move(ranges);
  }
  are_here_ =
      std::ranges::any_of(entries_, [](const auto& entry) { return !entry.second.held.ranges.empty(); });
  return Verdict::kGiven;
}

FileLocks::Verdict FileLocks::test_here(LockOwner owner, const nfs4::LockRange& range, bool only_we,
                                        std::optional<InTheWay>& found) const {
  const std::lock_guard lock(mutex_);
  if (are_here_ && (handing_over_ || !only_we)) return Verdict::kWait;
  if (!only_we || any_at_server()) return Verdict::kAskServer;
  found = find_in_the_way(owner, range);
  return found ? Verdict::kInTheWay : Verdict::kGiven;
}

bool FileLocks::are_here() const {
  const std::lock_guard lock(mutex_);
  return are_here_;
}

bool FileLocks::await_hand_over() {
  if (initiator::CancellationScope::cancelled()) return false;
  std::unique_lock lock(mutex_);
  if (are_here_ || handing_over_) changed_.wait_for(lock, std::chrono::seconds(1));
  return true;
}

std::optional<FileLocks::HandOver> FileLocks::begin_hand_over() {
  std::unique_lock lock(mutex_);
  handing_over_ = are_here_;
  if (!are_here_) {
    lock.unlock();
    changed_.notify_all();
    return std::nullopt;
  }
  HandOver made{.number = losses_, .owners = {}};
  for (const auto& [owner, entry] : entries_) {
    if (!entry.held.ranges.empty()) made.owners.emplace_back(owner, entry.held);
  }
  return made;
}

std::optional<size_t> FileLocks::end_hand_over(HandOver handed_over) {
  size_t lost = 0;
  {
    const std::lock_guard lock(mutex_);
    if (are_here_ && handed_over.number != losses_) return std::nullopt;
    // Else all of them were lost meanwhile, which lose_here() has told.
    if (are_here_) {
      for (auto& [owner, held] : handed_over.owners) {
        lost += held.lost ? 1 : 0;
        entries_[owner].held = std::move(held);
      }
    }
    are_here_ = handing_over_ = false;
    count_lost();
  }
  changed_.notify_all();
  return lost;
}

bool FileLocks::outlive_server() {
  const std::lock_guard lock(mutex_);
  if (!are_here_) return false;
  ++losses_;
  for (auto& [owner, entry] : entries_) entry.held.stateid.reset();
  return true;
}

size_t FileLocks::lose_here() {
  size_t lost = 0;
  {
    const std::lock_guard lock(mutex_);
    if (!are_here_) return 0;
    for (auto& [owner, entry] : entries_) {
      entry.held.stateid.reset();
      if (entry.held.ranges.empty()) continue;
      entry.held.lost = true;
      ++lost;
    }
    are_here_ = false;
    count_lost();
  }
  changed_.notify_all();
  return lost;
}

}  // namespace pnfsrdma::fuse_client
