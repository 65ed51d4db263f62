// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <unordered_map>

#include "shared/nfs4/basic_types.h"

namespace pnfsrdma::fuse_client {

// Which file a node number stood for that the kernel has forgotten: open_by_handle_at(2) comes back with the
// number, NFS finds files by their handle only. The last kMost of them, about 400 bytes each. Not thread-safe.
class ForgottenNodes {
 public:
  static constexpr size_t kMost = 8192;

  void add(uint64_t node, const nfs4::FileHandle& handle);
  std::optional<nfs4::FileHandle> handle_of(uint64_t node) const;
  // The file is known again, under the same number. None: it is not here.
  std::optional<uint64_t> take(const nfs4::FileHandle& handle);
  size_t size() const { return order_.size(); }

 private:
  using ByHandle = std::map<nfs4::FileHandle, uint64_t>;
  struct Entry {
    std::list<uint64_t>::iterator order;
    ByHandle::iterator handle;
  };

  void erase(uint64_t node);

  std::list<uint64_t> order_;  // the oldest first
  ByHandle by_handle_;
  std::unordered_map<uint64_t, Entry> by_node_;
};

}  // namespace pnfsrdma::fuse_client
