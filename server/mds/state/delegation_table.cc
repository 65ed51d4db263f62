// SPDX-License-Identifier: Apache-2.0
#include "server/mds/state/delegation_table.h"

#include "server/mds/state/state_memory.h"
#include "shared/base/check.h"

namespace pnfsrdma::mds {

namespace {

const DelegationTable::Set kNoDelegations;

}  // namespace

DelegationState* DelegationTable::find(const StateidOther& other) const {
  const auto found = by_other_.find(other);
  return found == by_other_.end() ? nullptr : found->second.get();
}

const DelegationTable::Set& DelegationTable::of_file(uint64_t inode) const {
  const auto found = by_file_.find(inode);
  return found == by_file_.end() ? kNoDelegations : found->second;
}

const DelegationState* DelegationTable::find(uint64_t inode, ClientId client) const {
  const Set& all = of_file(inode);
  if (all.empty()) return nullptr;
  DelegationState first;  // no stateid is smaller
  first.client = client;
  const auto at = all.lower_bound(&first);
  return at != all.end() && (*at)->client == client ? *at : nullptr;
}

bool DelegationTable::is_held_by_others(uint64_t inode, ClientId client) const {
  const Set& all = of_file(inode);
  return !all.empty() && ((*all.begin())->client != client || (*all.rbegin())->client != client);
}

const DelegationState* DelegationTable::write_delegation(uint64_t inode) const {
  const Set& all = of_file(inode);
  return !all.empty() && (*all.begin())->kind == DelegationKind::kWrite ? *all.begin() : nullptr;
}

bool DelegationTable::may_be_written_by_others(uint64_t inode, ClientId client) const {
  const DelegationState* held = write_delegation(inode);
  return held != nullptr && held->client != client;
}

const DelegationTable::Set& DelegationTable::of_client(ClientId client) const {
  const auto found = by_client_.find(client);
  return found == by_client_.end() ? kNoDelegations : found->second.all;
}

std::vector<ClientId> DelegationTable::holders() const {
  std::vector<ClientId> clients;
  clients.reserve(by_client_.size());
  for (const auto& [client, holder] : by_client_) clients.push_back(client);
  return clients;
}

size_t DelegationTable::revoked_of_client(ClientId client) const {
  const auto found = by_client_.find(client);
  return found == by_client_.end() ? 0 : found->second.revoked;
}

DelegationState& DelegationTable::add(DelegationState state) {
  auto owned = std::make_unique<DelegationState>(std::move(state));
  DelegationState& added = *owned;
  Holder& holder = by_client_[added.client];
  holder.all.insert(&added);
  if (added.revoked) {
    ++holder.revoked;
  } else {
    by_file_[added.inode].insert(&added);
  }
  if (memory_ != nullptr) memory_->hold(added.client, StateMemory::kDelegationBytes);
  const bool fresh = by_other_.emplace(added.other, std::move(owned)).second;
  CHECK(fresh);
  return added;
}

void DelegationTable::leave_file(DelegationState& state) {
  const auto file = by_file_.find(state.inode);
  CHECK(file != by_file_.end());
  file->second.erase(&state);
  if (file->second.empty()) by_file_.erase(file);
}

void DelegationTable::revoke(DelegationState& state) {
  CHECK(!state.revoked);
  leave_file(state);
  state.revoked = true;
  ++by_client_.at(state.client).revoked;
}

bool DelegationTable::has_room(ClientId client) const {
  return memory_ == nullptr || memory_->has_room_to_spare(client);
}

void DelegationTable::remove(DelegationState& state) {
  if (memory_ != nullptr) memory_->give_back(state.client, StateMemory::kDelegationBytes);
  if (!state.revoked) leave_file(state);
  const auto holder = by_client_.find(state.client);
  CHECK(holder != by_client_.end());
  holder->second.all.erase(&state);
  if (state.revoked) --holder->second.revoked;
  if (holder->second.all.empty()) by_client_.erase(holder);
  by_other_.erase(StateidOther(state.other));
}

}  // namespace pnfsrdma::mds
