// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "fuse-client/forgotten_nodes.h"
#include "fuse-client/inode.h"
#include "fuse-client/kept_inodes.h"
#include "shared/base/sync.h"

namespace pnfsrdma::fuse_client {

// Every inode the kernel knows, by filehandle and node number; those of which something is believed though the kernel
// has forgotten them, or has only listed them (KeptInodes); and which files the last numbers stood for that are not
// here any more. A number is never used for another file. Thread-safe.
class InodeTable {
 public:
  // `generation`: of this mount, so that a handle of an earlier one (name_to_handle_at) names nothing here.
  // `kept_bytes_max`: of the inodes that the kernel does not know; 0: none is kept.
  explicit InodeTable(uint32_t generation = 0, size_t kept_bytes_max = 0)
      : generation_(generation), kept_(kept_bytes_max) {}

  // The root of the mount: never forgotten.
  void set_root(std::shared_ptr<Inode> root) { root_ = std::move(root); }
  const std::shared_ptr<Inode>& root() const { return root_; }

  // The inode of this handle, made if it is new; one lookup more that the kernel will forget some day.
  std::shared_ptr<Inode> look_up(const nfs4::FileHandle& handle, uint64_t file_id);
  // The same of a file of which the kernel is not told. Null: none are kept.
  std::shared_ptr<Inode> keep(const nfs4::FileHandle& handle, uint64_t file_id);
  // Inodes that have left the table since the last time; what they hold is to be given back.
  std::vector<std::shared_ptr<Inode>> take_gone();
  // The kernel's node number -> inode. `node` is one that the kernel has got from us and not forgotten.
  std::shared_ptr<Inode> at(uint64_t node) const;
  // Null: it is not here.
  std::shared_ptr<Inode> find(uint64_t node) const;
  // Of a node that the kernel may have forgotten long ago. None: nobody knows what it was.
  std::optional<nfs4::FileHandle> handle_of(uint64_t node) const;
  // To be told to the kernel with the node number; the root has none.
  uint32_t generation_of(const Inode& inode) const { return inode.node == kRootNode ? 0 : generation_; }
  // Null: it is not here.
  std::shared_ptr<Inode> find(const nfs4::FileHandle& handle) const;
  // The kernel has been told that this is `name` in `directory`; each inode is found by its newest name.
  void named(Inode& inode, const std::shared_ptr<const Inode>& directory, std::string_view name);
  // Null: the name is of none, or an older one of a file with several.
  std::shared_ptr<Inode> find(const Inode& directory, std::string_view name) const;
  void forget(uint64_t node, uint64_t lookups);
  // Those that the kernel knows.
  size_t size() const;
  struct Kept {
    size_t inodes = 0;
    size_t bytes = 0;
  };
  Kept kept() const;
  // Inodes that are gone, since the mount began.
  uint64_t forgotten() const { return forgotten_; }

  // All that are open at the server: for a reclaim.
  std::vector<std::shared_ptr<Inode>> open_ones() const;

 private:
  // Under mutex_.
  Inode& of_handle(const nfs4::FileHandle& handle, uint64_t file_id);
  void forget_name(const Inode& inode);
  void erase(Inode& inode);
  void erase_surplus();

  const uint32_t generation_;
  std::shared_ptr<Inode> root_;
  std::atomic<uint64_t> forgotten_ = 0;
  mutable Mutex mutex_;
  // Guarded by mutex_.
  std::map<nfs4::FileHandle, std::shared_ptr<Inode>> by_handle_;
  std::unordered_map<uint64_t, Inode*> by_node_;
  std::unordered_map<uint64_t, uint64_t> node_of_name_;  // by Inode::name_key
  uint64_t last_node_ = kRootNode;
  ForgottenNodes past_;
  KeptInodes kept_;  // those without lookups
  std::vector<std::shared_ptr<Inode>> gone_;
};

}  // namespace pnfsrdma::fuse_client
