// SPDX-License-Identifier: Apache-2.0
#include "fuse-client/kept_listings.h"

#include <mutex>
#include <utility>

namespace pnfsrdma::fuse_client {

size_t ListedEntry::memory() const {
  constexpr size_t kInPlace = 15;  // bytes of a short string
  return sizeof(ListedEntry) + (name.size() > kInPlace ? name.size() + 1 : 0);
}

void KeptListings::keep(uint64_t node, std::shared_ptr<const WholeListing> listing) {
  size_t bytes = sizeof(WholeListing) + sizeof(Kept);
  for (const ListedEntry& entry : listing->entries) bytes += entry.memory();
  const std::lock_guard lock(mutex_);
  remove(node);
  if (bytes > bytes_max_) return;
  places_[node] = order_.insert(order_.end(), {node, std::move(listing), bytes});
  bytes_ += bytes;
  while (bytes_ > bytes_max_) remove(order_.front().node);
}

std::shared_ptr<const WholeListing> KeptListings::find(uint64_t node) {
  const std::lock_guard lock(mutex_);
  const auto found = places_.find(node);
  if (found == places_.end()) return nullptr;
  order_.splice(order_.end(), order_, found->second);
  return found->second->listing;
}

void KeptListings::forget(uint64_t node) {
  const std::lock_guard lock(mutex_);
  remove(node);
}

size_t KeptListings::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

void KeptListings::remove(uint64_t node) {
  const auto found = places_.find(node);
  if (found == places_.end()) return;
  bytes_ -= found->second->bytes;
  order_.erase(found->second);
  places_.erase(found);
}

}  // namespace pnfsrdma::fuse_client
