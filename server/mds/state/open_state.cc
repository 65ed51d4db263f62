// SPDX-License-Identifier: Apache-2.0
#include "server/mds/state/open_state.h"

#include <algorithm>
#include <functional>
#include <string_view>

#include "server/mds/state/state_memory.h"
#include "shared/base/check.h"

namespace pnfsrdma::mds {

namespace {

const OpenTable::Set kNoOpens;

size_t bytes_of(const OpenState& state) {
  return StateMemory::kOpenBytes + state.owner.size();
}

}  // namespace

void OpenTable::Shares::count(const OpenState& state, size_t by) {
  opens += by;
  for (size_t bit = 0; bit < access.size(); ++bit) {
    if ((state.access >> bit & 1) != 0) access[bit] += by;
    if ((state.deny >> bit & 1) != 0) deny[bit] += by;
  }
}

void OpenTable::File::count(const OpenState& state, size_t by) {
  shares.count(state, by);
  const auto client = by_client.try_emplace(state.client).first;
  client->second.count(state, by);
  if (client->second.opens == 0) by_client.erase(client);
}

size_t OpenTable::File::writers_of(ClientId client) const {
  const auto found = by_client.find(client);
  return found == by_client.end() ? 0 : found->second.access[kShareWrite - 1];
}

OpenState* OpenTable::find(const StateidOther& other) {
  const auto found = by_other_.find(other);
  return found == by_other_.end() ? nullptr : found->second.get();
}

OpenState* OpenTable::find(ClientId client, uint64_t inode, ByteSpan owner) {
  return by_owner_.find(client, inode, owner);
}

const OpenTable::Set& OpenTable::opens_of_file(uint64_t inode) const {
  const auto found = by_file_.find(inode);
  return found == by_file_.end() ? kNoOpens : found->second.opens;
}

std::vector<ClientId> OpenTable::clients_of_file(uint64_t inode) const {
  std::vector<ClientId> clients;
  const auto found = by_file_.find(inode);
  if (found == by_file_.end()) return clients;
  for (const auto& [client, shares] : found->second.by_client) clients.push_back(client);
  return clients;
}

const OpenTable::Set& OpenTable::opens_of_client(ClientId client) const {
  const auto found = by_client_.find(client);
  return found == by_client_.end() ? kNoOpens : found->second;
}

uint32_t OpenTable::access_of_client(uint64_t inode, ClientId client) const {
  const auto file = by_file_.find(inode);
  if (file == by_file_.end()) return 0;
  const auto found = file->second.by_client.find(client);
  if (found == file->second.by_client.end()) return 0;
  const auto& counts = found->second.access;
  return (counts[kShareRead - 1] > 0 ? kShareRead : 0) | (counts[kShareWrite - 1] > 0 ? kShareWrite : 0);
}

bool OpenTable::is_open_by_others(uint64_t inode, ClientId client) const {
  const auto found = by_file_.find(inode);
  if (found == by_file_.end()) return false;
  const auto own = found->second.by_client.find(client);
  return found->second.shares.opens > (own == found->second.by_client.end() ? 0 : own->second.opens);
}

bool OpenTable::is_written_by_others(uint64_t inode, ClientId client) const {
  const auto found = by_file_.find(inode);
  if (found == by_file_.end()) return false;
  return found->second.shares.access[kShareWrite - 1] > found->second.writers_of(client);
}

bool OpenTable::share_allowed(uint64_t inode, uint32_t access, uint32_t deny, const OpenState* except) const {
  const auto found = by_file_.find(inode);
  if (found == by_file_.end()) return true;
  Shares others = found->second.shares;
  if (except != nullptr && found->second.opens.contains(const_cast<OpenState*>(except)))
    others.count(*except, size_t(-1));
  for (size_t bit = 0; bit < others.access.size(); ++bit) {
    if ((access >> bit & 1) != 0 && others.deny[bit] > 0) return false;
    if ((deny >> bit & 1) != 0 && others.access[bit] > 0) return false;
  }
  return true;
}

OpenState& OpenTable::add(OpenState state) {
  auto owned = std::make_unique<OpenState>(std::move(state));
  OpenState& added = *owned;
  File& file = by_file_[added.inode];
  file.opens.insert(&added);
  file.count(added, 1);
  by_client_[added.client].insert(&added);
  by_owner_.insert(added);
  if (memory_ != nullptr) memory_->hold(added.client, bytes_of(added));
  const bool fresh = by_other_.emplace(added.other, std::move(owned)).second;
  CHECK(fresh);
  return added;
}

void OpenTable::replace(OpenState& state, OpenState changed) {
  CHECK(state.other == changed.other && state.inode == changed.inode && state.client == changed.client);
  CHECK(state.owner == changed.owner);
  File& file = by_file_.at(state.inode);
  file.count(state, size_t(-1));
  state = std::move(changed);
  file.count(state, 1);
}

bool OpenTable::has_room(ClientId client) const {
  return memory_ == nullptr || memory_->has_room(client);
}

void OpenTable::remove(OpenState& state) {
  if (memory_ != nullptr) memory_->give_back(state.client, bytes_of(state));
  by_owner_.erase(state);
  const auto file = by_file_.find(state.inode);
  CHECK(file != by_file_.end());
  file->second.count(state, size_t(-1));
  file->second.opens.erase(&state);
  if (file->second.opens.empty()) by_file_.erase(file);
  const auto client = by_client_.find(state.client);
  CHECK(client != by_client_.end());
  client->second.erase(&state);
  if (client->second.empty()) by_client_.erase(client);
  by_other_.erase(StateidOther(state.other));
}

}  // namespace pnfsrdma::mds
