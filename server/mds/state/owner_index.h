// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <functional>
#include <string_view>
#include <unordered_set>

#include "server/mds/state/client.h"
#include "shared/base/bytes.h"

namespace pnfsrdma::mds {

// States of owners, found by client, file and owner's name (open_owner4, lock_owner4): O(1). It owns none;
// `State` has `client`, `inode` and `owner`, which do not change while it is here.
template <typename State>
class OwnerIndex {
 public:
  // Null: none.
  State* find(ClientId client, uint64_t inode, ByteSpan owner) const {
    const auto found = states_.find(Key{client, inode, owner});
    return found == states_.end() ? nullptr : *found;
  }
  void insert(State& state) { states_.insert(&state); }
  void erase(State& state) { states_.erase(&state); }

 private:
  struct Key {
    ClientId client = 0;
    uint64_t inode = 0;
    ByteSpan owner;
  };
  static Key key_of(const State& state) { return {state.client, state.inode, state.owner}; }
  struct Hash {
    using is_transparent = void;
    size_t operator()(const Key& key) const {
      const size_t owner = std::hash<std::string_view>()(as_text(key.owner));
      return owner ^ (key.client * 0x9E3779B97F4A7C15) ^ (key.inode * 0xC2B2AE3D27D4EB4F);
    }
    size_t operator()(const State* state) const { return (*this)(key_of(*state)); }
  };
  struct Same {
    using is_transparent = void;
    bool operator()(const Key& a, const Key& b) const {
      return a.client == b.client && a.inode == b.inode && std::ranges::equal(a.owner, b.owner);
    }
    bool operator()(const State* a, const State* b) const { return a == b; }
    bool operator()(const Key& a, const State* b) const { return (*this)(a, key_of(*b)); }
    bool operator()(const State* a, const Key& b) const { return (*this)(key_of(*a), b); }
  };

  std::unordered_set<State*, Hash, Same> states_;
};

}  // namespace pnfsrdma::mds
