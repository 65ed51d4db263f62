// SPDX-License-Identifier: Apache-2.0
#include "server/mds/state/open_state.h"

#include <algorithm>

#include "shared/base/check.h"

namespace pnfsrdma::mds {

namespace {

// Takes `state` out of one index, and the list with it when it was the last.
template <typename Map, typename Key>
void drop(Map& map, const Key& key, const OpenState* state) {
  const auto list = map.find(key);
  CHECK(list != map.end());
  std::erase(list->second, state);
  if (list->second.empty()) map.erase(list);
}

const std::vector<OpenState*> kNoOpens;

}  // namespace

OpenState* OpenTable::find(const StateidOther& other) {
  const auto found = by_other_.find(other);
  return found == by_other_.end() ? nullptr : found->second.get();
}

OpenState* OpenTable::find(ClientId client, uint64_t inode, ByteSpan owner) {
  for (OpenState* open : opens_of_file(inode)) {
    if (open->client == client && std::ranges::equal(open->owner, owner)) return open;
  }
  return nullptr;
}

const std::vector<OpenState*>& OpenTable::opens_of_file(uint64_t inode) const {
  const auto found = by_file_.find(inode);
  return found == by_file_.end() ? kNoOpens : found->second;
}

const std::vector<OpenState*>& OpenTable::opens_of_client(ClientId client) const {
  const auto found = by_client_.find(client);
  return found == by_client_.end() ? kNoOpens : found->second;
}

bool OpenTable::share_allowed(uint64_t inode, uint32_t access, uint32_t deny, const OpenState* except) const {
  return std::ranges::none_of(opens_of_file(inode), [&](const OpenState* open) {
    return open != except && ((open->deny & access) != 0 || (open->access & deny) != 0);
  });
}

OpenState& OpenTable::add(OpenState state) {
  auto owned = std::make_unique<OpenState>(std::move(state));
  OpenState& added = *owned;
  by_file_[added.inode].push_back(&added);
  by_client_[added.client].push_back(&added);
  const bool fresh = by_other_.emplace(added.other, std::move(owned)).second;
  CHECK(fresh);
  return added;
}

void OpenTable::remove(OpenState& state) {
  drop(by_file_, state.inode, &state);
  drop(by_client_, state.client, &state);
  by_other_.erase(StateidOther(state.other));
}

}  // namespace pnfsrdma::mds
