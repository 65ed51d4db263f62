// SPDX-License-Identifier: Apache-2.0
#include "server/brickd/mapping_table.h"

#include <algorithm>

#include "shared/base/check.h"

namespace pnfsrdma::brick {

// Addresses do not wrap: whoever adds has looked that the blocks are there.
bool MappingTable::overlap(const Mapping& a, const Mapping& b) const {
  return a.address < b.address + b.count * block_size_ && b.address < a.address + a.count * block_size_;
}

bool MappingTable::exclude(const Mapping& a, const Mapping& b) const {
  return (a.writable || b.writable) && !(a.shared && b.shared) && overlap(a, b);
}

blocks::Status MappingTable::add(const Key& key, const Mapping& mapping) {
  if (all_.size() >= blocks::kMappingsMax) return blocks::Status::kLimit;
  for (const auto& [other, held] : all_) {
    if (exclude(held, mapping)) return blocks::Status::kConflict;
  }
  CHECK(all_.emplace(key, mapping).second);
  if (reclaims_) since_start_.push_back(mapping);
  return blocks::Status::kOk;
}

blocks::Status MappingTable::reclaim(const Key& key, const Mapping& mapping) {
  const auto excludes = [&](const Mapping& other) { return exclude(other, mapping); };
  if (!reclaims_ || std::ranges::any_of(since_start_, excludes)) return blocks::Status::kRevoked;
  if (all_.size() >= blocks::kMappingsMax) return blocks::Status::kLimit;
  // Of two that were there together before neither excludes the other: this one was not.
  for (const auto& [other, held] : all_) {
    if (exclude(held, mapping)) return blocks::Status::kRevoked;
  }
  CHECK(all_.emplace(key, mapping).second);
  return blocks::Status::kOk;
}

std::optional<MappingTable::Mapping> MappingTable::find(const Key& key) const {
  const auto found = all_.find(key);
  return found == all_.end() ? std::nullopt : std::optional(found->second);
}

std::vector<MappingTable::Key> MappingTable::overlapping(uint64_t address, uint64_t count) const {
  const Mapping blocks{.address = address, .count = count};
  std::vector<Key> keys;
  for (const auto& [key, mapping] : all_) {
    if (overlap(mapping, blocks)) keys.push_back(key);
  }
  return keys;
}

std::vector<MappingTable::Key> MappingTable::of(uint64_t attachment) const {
  std::vector<Key> keys;
  for (auto at = all_.lower_bound({attachment, 0}); at != all_.end() && at->first.attachment == attachment;
       ++at)
    keys.push_back(at->first);
  return keys;
}

void MappingTable::taken_back(uint64_t address, uint64_t count) {
  if (reclaims_) since_start_.push_back({.address = address, .count = count, .writable = true});
}

void MappingTable::end_reclaims() {
  reclaims_ = false;
  since_start_ = {};
}

}  // namespace pnfsrdma::brick
