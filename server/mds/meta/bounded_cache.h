// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <unordered_map>
#include <utility>

#include "shared/base/check.h"

namespace pnfsrdma::mds {

// A map that keeps the `capacity` most recently used entries. One hash look-up and no allocation per hit. Not
// thread-safe. Hash and Equal may be transparent: then find() and erase() take what they take.
template <typename Key, typename Value, typename Hash = std::hash<Key>, typename Equal = std::equal_to<>>
class BoundedCache {
 public:
  explicit BoundedCache(size_t capacity) : capacity_(capacity) { CHECK(capacity > 0); }

  // Null if absent. The pointer is good until the next put() or erase().
  template <typename Lookup>
  Value* find(const Lookup& key) {
    const auto found = index_.find(key);
    if (found == index_.end()) return nullptr;
    order_.splice(order_.begin(), order_, found->second);
    return &found->second->second;
  }

  void put(Key key, Value value) {
    if (Value* present = find(key)) {
      *present = std::move(value);
      return;
    }
    if (order_.size() == capacity_) {
      index_.erase(order_.back().first);
      order_.pop_back();
    }
    order_.emplace_front(key, std::move(value));
    index_.emplace(std::move(key), order_.begin());
  }

  template <typename Lookup>
  void erase(const Lookup& key) {
    const auto found = index_.find(key);
    if (found == index_.end()) return;
    order_.erase(found->second);
    index_.erase(found);
  }

  void clear() {
    index_.clear();
    order_.clear();
  }
  size_t size() const { return order_.size(); }

 private:
  using Order = std::list<std::pair<Key, Value>>;

  size_t capacity_;
  Order order_;  // most recently used first
  std::unordered_map<Key, typename Order::iterator, Hash, Equal> index_;
};

}  // namespace pnfsrdma::mds
