// SPDX-License-Identifier: Apache-2.0
#include "server/mds/state/lock_table.h"

#include <algorithm>

#include "shared/base/check.h"

namespace pnfsrdma::mds {

namespace {

// Takes `state` out of one index, and the list with it when it was the last.
template <typename Map, typename Key>
void drop(Map& map, const Key& key, const LockState* state) {
  const auto list = map.find(key);
  CHECK(list != map.end());
  std::erase(list->second, state);
  if (list->second.empty()) map.erase(list);
}

const std::vector<LockState*> kNoLocks;

bool belongs_to(const LockState& state, ClientId client, ByteSpan owner) {
  return state.client == client && std::ranges::equal(state.owner, owner);
}

}  // namespace

LockState* LockTable::find(const StateidOther& other) {
  const auto found = by_other_.find(other);
  return found == by_other_.end() ? nullptr : found->second.get();
}

LockState* LockTable::find(ClientId client, uint64_t inode, ByteSpan owner) {
  for (LockState* state : locks_of_file(inode)) {
    if (belongs_to(*state, client, owner)) return state;
  }
  return nullptr;
}

std::vector<LockState*> LockTable::locks_of_open(uint64_t inode, const StateidOther& open) const {
  std::vector<LockState*> locks;
  for (LockState* state : locks_of_file(inode)) {
    if (state->open == open) locks.push_back(state);
  }
  return locks;
}

const std::vector<LockState*>& LockTable::locks_of_client(ClientId client) const {
  const auto found = by_client_.find(client);
  return found == by_client_.end() ? kNoLocks : found->second;
}

const std::vector<LockState*>& LockTable::locks_of_file(uint64_t inode) const {
  const auto found = by_file_.find(inode);
  return found == by_file_.end() ? kNoLocks : found->second;
}

std::optional<LockTable::Conflict> LockTable::conflict(uint64_t inode, const nfs4::LockRange& wanted,
                                                       ClientId client, ByteSpan owner) const {
  for (const LockState* state : locks_of_file(inode)) {
    if (belongs_to(*state, client, owner)) continue;
    if (const nfs4::LockRange* range = state->ranges.conflict(wanted)) return Conflict{state, *range};
  }
  return std::nullopt;
}

LockState& LockTable::add(LockState state) {
  auto owned = std::make_unique<LockState>(std::move(state));
  LockState& added = *owned;
  by_file_[added.inode].push_back(&added);
  by_client_[added.client].push_back(&added);
  const bool fresh = by_other_.emplace(added.other, std::move(owned)).second;
  CHECK(fresh);
  return added;
}

void LockTable::replace(LockState& state, LockState changed) {
  CHECK(state.other == changed.other && state.inode == changed.inode && state.client == changed.client);
  state = std::move(changed);
  released(state.inode);
}

void LockTable::remove(LockState& state) {
  const uint64_t inode = state.inode;
  drop(by_file_, inode, &state);
  drop(by_client_, state.client, &state);
  by_other_.erase(StateidOther(state.other));
  released(inode);
}

}  // namespace pnfsrdma::mds
