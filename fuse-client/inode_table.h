// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "fuse-client/inode.h"
#include "shared/base/sync.h"

namespace pnfsrdma::fuse_client {

// FUSE's number of the root.
inline constexpr uint64_t kRootNode = 1;

// Every inode the kernel knows, by filehandle. Thread-safe.
class InodeTable {
 public:
  // The root of the mount: never forgotten.
  void set_root(std::shared_ptr<Inode> root) { root_ = std::move(root); }
  const std::shared_ptr<Inode>& root() const { return root_; }

  // The inode of this handle, made if it is new; one lookup more that the kernel will forget some day.
  std::shared_ptr<Inode> look_up(const nfs4::FileHandle& handle, uint64_t file_id);
  // The kernel's node number -> inode. `node` is one that the kernel has got from us and not forgotten.
  std::shared_ptr<Inode> at(uint64_t node) const;
  // Null if the kernel does not know it.
  std::shared_ptr<Inode> find(const nfs4::FileHandle& handle) const;
  void forget(uint64_t node, uint64_t lookups);
  size_t size() const;
  // Inodes that are gone, since the mount began.
  uint64_t forgotten() const { return forgotten_; }

  static uint64_t node_of(const Inode& inode, const InodeTable& table) {
    return &inode == table.root_.get() ? kRootNode : reinterpret_cast<uint64_t>(&inode);
  }
  // All that are open at the server: for a reclaim.
  std::vector<std::shared_ptr<Inode>> open_ones() const;

 private:
  std::shared_ptr<Inode> root_;
  std::atomic<uint64_t> forgotten_ = 0;
  mutable Mutex mutex_;
  // Guarded by mutex_. A node number is the inode's address: the kernel names only those it has and has not
  // forgotten.
  std::map<nfs4::FileHandle, std::shared_ptr<Inode>> by_handle_;
};

}  // namespace pnfsrdma::fuse_client
