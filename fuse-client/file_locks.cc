// SPDX-License-Identifier: Apache-2.0
#include "fuse-client/file_locks.h"

#include <fmt/format.h>

#include <algorithm>

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
  if (!held.stateid && !held.doubtful && !held.lost) entries_.erase(found);
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
    const bool any = held.stateid || held.doubtful || held.lost;
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

}  // namespace pnfsrdma::fuse_client
