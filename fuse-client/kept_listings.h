// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "shared/base/clock.h"
#include "shared/base/sync.h"
#include "shared/nfs4/basic_types.h"

namespace pnfsrdma::fuse_client {

// One entry of a directory, as readdir(3) shows it.
struct ListedEntry {
  uint64_t cookie = 0;
  std::string name;
  uint64_t file_id = 0;  // 0: not known
  uint32_t type = 0;     // S_IFMT
  uint64_t node = 0;     // of its inode in the InodeTable, where one may be; 0: none

  size_t memory() const;
};

// A directory as it was at one value of its change attribute: all entries, in the order of the server.
struct WholeListing {
  std::vector<ListedEntry> entries;
  uint64_t change = 0;
  SteadyTime asked_at;  // the first page
  nfs4::Verifier verifier{};
};

// The listings that the mount keeps for a kernel that has dropped its own; whether one is believed is its directory's
// Inode to say. By number of node, which is never reused, the one that was used longest ago goes first. Thread-safe.
class KeptListings {
 public:
  explicit KeptListings(size_t bytes_max) : bytes_max_(bytes_max) {}

  size_t bytes_max() const { return bytes_max_; }
  // In place of an older one. One that is too large by itself is not kept.
  void keep(uint64_t node, std::shared_ptr<const WholeListing> listing);
  std::shared_ptr<const WholeListing> find(uint64_t node);
  void forget(uint64_t node);
  size_t bytes() const;

 private:
  struct Kept {
    uint64_t node = 0;
    std::shared_ptr<const WholeListing> listing;
    size_t bytes = 0;
  };
  using Order = std::list<Kept>;  // the newest at the end
  // Under mutex_.
  void remove(uint64_t node);

  const size_t bytes_max_;
  mutable Mutex mutex_;
  // Guarded by mutex_.
  Order order_;
  std::unordered_map<uint64_t, Order::iterator> places_;
  size_t bytes_ = 0;
};

}  // namespace pnfsrdma::fuse_client
