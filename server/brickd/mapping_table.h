// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "shared/brick/blocks_protocol.h"

namespace pnfsrdma::brick {

// Who has which blocks of a partition mapped, and whether somebody else may. A model: knows no grants, does no
// I/O. Control loop only.
class MappingTable {
 public:
  struct Key {
    uint64_t attachment = 0;
    uint64_t number = 0;
    auto operator<=>(const Key&) const = default;
  };
  struct Mapping {
    uint64_t address = 0;
    uint64_t count = 0;
    bool writable = false;
    bool shared = false;
    bool operator==(const Mapping&) const = default;
  };
  using Entry = std::pair<Key, Mapping>;

  explicit MappingTable(uint64_t block_size) : block_size_(block_size) {}

  // kConflict, kLimit. The key is new.
  blocks::Status add(const Key& key, const Mapping& mapping);
  // One that an earlier process of the brick has had: kRevoked if anything since excludes it.
  blocks::Status reclaim(const Key& key, const Mapping& mapping);
  void remove(const Key& key) { all_.erase(key); }
  std::optional<Mapping> find(const Key& key) const;

  std::vector<Key> overlapping(uint64_t address, uint64_t count) const;
  std::vector<Key> of(uint64_t attachment) const;
  std::vector<Entry> all() const { return {all_.begin(), all_.end()}; }
  size_t size() const { return all_.size(); }

  // While mappings of an earlier process may be reclaimed: these blocks are taken back from whoever had them.
  void taken_back(uint64_t address, uint64_t count);
  // From now on none may.
  void end_reclaims();

 private:
  bool overlap(const Mapping& a, const Mapping& b) const;
  bool exclude(const Mapping& a, const Mapping& b) const;

  const uint64_t block_size_;
  std::map<Key, Mapping> all_;
  bool reclaims_ = true;
  // What began since the start and was not reclaimed, over or not; what was taken back.
  std::vector<Mapping> since_start_;
};

}  // namespace pnfsrdma::brick
