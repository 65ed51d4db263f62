// SPDX-License-Identifier: Apache-2.0
#include "server/mds/state/lock_table.h"

#include <algorithm>
#include <iterator>
#include <map>

#include "server/mds/state/state_memory.h"
#include "shared/base/check.h"

namespace pnfsrdma::mds {

namespace {

// Takes `state` out of one index, and the set with it when it was the last.
template <typename Map, typename Key>
void drop(Map& map, const Key& key, LockState* state) {
  const auto set = map.find(key);
  CHECK(set != map.end());
  set->second.erase(state);
  if (set->second.empty()) map.erase(set);
}

const LockTable::Set kNoLocks;

size_t bytes_of(const LockState& state) {
  return StateMemory::kLockBytes + state.owner.size() + state.ranges.all().size() * StateMemory::kRangeBytes;
}

bool in_front(const nfs4::LockRange& a, const nfs4::LockRange& b) {
  return std::tie(a.first, a.last, a.exclusive) < std::tie(b.first, b.last, b.exclusive);
}

bool belongs_to(const LockState& state, ClientId client, ByteSpan owner) {
  return state.client == client && std::ranges::equal(state.owner, owner);
}

}  // namespace

LockState* LockTable::find(const StateidOther& other) {
  const auto found = by_other_.find(other);
  return found == by_other_.end() ? nullptr : found->second.get();
}

LockState* LockTable::find(ClientId client, uint64_t inode, ByteSpan owner) {
  return by_owner_.find(client, inode, owner);
}

const LockTable::Set& LockTable::locks_of_open(const StateidOther& open) const {
  const auto found = by_open_.find(open);
  return found == by_open_.end() ? kNoLocks : found->second;
}

const LockTable::Set& LockTable::locks_of_client(ClientId client) const {
  const auto found = by_client_.find(client);
  return found == by_client_.end() ? kNoLocks : found->second;
}

const LockTable::Set& LockTable::locks_of_file(uint64_t inode) const {
  const auto found = by_file_.find(inode);
  return found == by_file_.end() ? kNoLocks : found->second.locks;
}

std::optional<LockTable::Conflict> LockTable::conflict(uint64_t inode, const nfs4::LockRange& wanted,
                                                       ClientId client, ByteSpan owner) const {
  const auto file = by_file_.find(inode);
  if (file == by_file_.end()) return std::nullopt;
  std::optional<Conflict> found;
  const auto look = [&](const RangeIndex<LockState*>& held, bool exclusive) {
    held.visit(wanted.first, wanted.last, [&](const LockState* state, uint64_t first, uint64_t last) {
      if (!belongs_to(*state, client, owner)) found = Conflict{state, {first, last, exclusive}};
      return !found;
    });
  };
  look(file->second.exclusive, true);
  if (!found && wanted.exclusive) look(file->second.shared, false);
  return found;
}

void LockTable::index(LockState& state, std::span<const nfs4::LockRange> ranges) {
  File& file = by_file_[state.inode];
  for (const nfs4::LockRange& range : ranges) file.of(range).insert(range.first, range.last, &state);
}

void LockTable::unindex(LockState& state, std::span<const nfs4::LockRange> ranges) {
  File& file = by_file_.at(state.inode);
  for (const nfs4::LockRange& range : ranges) file.of(range).erase(range.first, &state);
}

LockState& LockTable::add(LockState state) {
  auto owned = std::make_unique<LockState>(std::move(state));
  LockState& added = *owned;
  by_file_[added.inode].locks.insert(&added);
  index(added, added.ranges.all());
  by_owner_.insert(added);
  by_client_[added.client].insert(&added);
  by_open_[added.open].insert(&added);
  if (memory_ != nullptr) memory_->hold(added.client, bytes_of(added));
  const bool fresh = by_other_.emplace(added.other, std::move(owned)).second;
  CHECK(fresh);
  return added;
}

// Most of an owner's ranges stay as they are.
void LockTable::replace(LockState& state, LockState changed) {
  CHECK(state.other == changed.other && state.inode == changed.inode && state.client == changed.client &&
        state.open == changed.open && std::ranges::equal(state.owner, changed.owner));
  std::vector<nfs4::LockRange> gone;
  std::vector<nfs4::LockRange> come;
  std::ranges::set_difference(state.ranges.all(), changed.ranges.all(), std::back_inserter(gone), in_front);
  std::ranges::set_difference(changed.ranges.all(), state.ranges.all(), std::back_inserter(come), in_front);
  unindex(state, gone);
  index(state, come);
  if (memory_ != nullptr) {
    memory_->hold(state.client, bytes_of(changed));
    memory_->give_back(state.client, bytes_of(state));
  }
  // Its owner's name stays where it is: that is indexed.
  state.seqid = changed.seqid;
  state.ranges = std::move(changed.ranges);
  released(state.inode, gone);
}

bool LockTable::has_room(ClientId client) const {
  return memory_ == nullptr || memory_->has_room(client);
}

void LockTable::remove(std::span<LockState* const> states) {
  std::map<uint64_t, std::vector<nfs4::LockRange>> gone;
  for (LockState* state : states) {
    const std::vector<nfs4::LockRange>& ranges = state->ranges.all();
    std::vector<nfs4::LockRange>& of_file = gone[state->inode];
    of_file.insert(of_file.end(), ranges.begin(), ranges.end());
    unindex(*state, ranges);
    File& file = by_file_.at(state->inode);
    file.locks.erase(state);
    if (file.locks.empty()) by_file_.erase(state->inode);
    by_owner_.erase(*state);
    if (memory_ != nullptr) memory_->give_back(state->client, bytes_of(*state));
    drop(by_client_, state->client, state);
    drop(by_open_, state->open, state);
    by_other_.erase(StateidOther(state->other));
  }
  for (const auto& [inode, ranges] : gone) released(inode, ranges);
}

}  // namespace pnfsrdma::mds
