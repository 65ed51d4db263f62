// SPDX-License-Identifier: Apache-2.0
#include "server/mds/state/lock_table.h"

#include <algorithm>

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

bool belongs_to(const LockState& state, ClientId client, ByteSpan owner) {
  return state.client == client && std::ranges::equal(state.owner, owner);
}

}  // namespace

LockState* LockTable::find(const StateidOther& other) {
  const auto found = by_other_.find(other);
  return found == by_other_.end() ? nullptr : found->second.get();
}

LockState* LockTable::find(ClientId client, uint64_t inode, ByteSpan owner) {
  const Set& locks = locks_of_file(inode);
  LockState first;  // no stateid is smaller
  first.client = client;
  for (auto at = locks.lower_bound(&first); at != locks.end() && (*at)->client == client; ++at) {
    if (std::ranges::equal((*at)->owner, owner)) return *at;
  }
  return nullptr;
}

std::vector<LockState*> LockTable::locks_of_open(const StateidOther& open) const {
  const auto found = by_open_.find(open);
  if (found == by_open_.end()) return {};
  return {found->second.begin(), found->second.end()};
}

const LockTable::Set& LockTable::locks_of_client(ClientId client) const {
  const auto found = by_client_.find(client);
  return found == by_client_.end() ? kNoLocks : found->second;
}

const LockTable::Set& LockTable::locks_of_file(uint64_t inode) const {
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
  by_file_[added.inode].insert(&added);
  by_client_[added.client].insert(&added);
  by_open_[added.open].insert(&added);
  const bool fresh = by_other_.emplace(added.other, std::move(owned)).second;
  CHECK(fresh);
  return added;
}

void LockTable::replace(LockState& state, LockState changed) {
  CHECK(state.other == changed.other && state.inode == changed.inode && state.client == changed.client &&
        state.open == changed.open);
  state = std::move(changed);
  released(state.inode);
}

void LockTable::remove(std::span<LockState* const> states) {
  std::set<uint64_t> inodes;
  for (LockState* state : states) {
    inodes.insert(state->inode);
    drop(by_file_, state->inode, state);
    drop(by_client_, state->client, state);
    drop(by_open_, state->open, state);
    by_other_.erase(StateidOther(state->other));
  }
  for (const uint64_t inode : inodes) released(inode);
}

}  // namespace pnfsrdma::mds
