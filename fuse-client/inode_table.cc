// SPDX-License-Identifier: Apache-2.0
#include "fuse-client/inode_table.h"

#include <functional>
#include <utility>

#include "shared/base/check.h"

namespace pnfsrdma::fuse_client {
namespace {

// Of a name in a directory; 64 bits, so that two names of one key are not to be feared.
uint64_t key_of(const Inode& directory, std::string_view name) {
  constexpr uint64_t kGoldenRatio = 0x9e3779b97f4a7c15;
  return std::hash<std::string_view>()(name) ^ (directory.node * kGoldenRatio);
}

}  // namespace

std::shared_ptr<Inode> InodeTable::look_up(const nfs4::FileHandle& handle, uint64_t file_id) {
  if (handle == root_->handle) return root_;
  const std::lock_guard lock(mutex_);
  Inode& inode = of_handle(handle, file_id);
  if (inode.lookups++ == 0) kept_.remove(inode);
  return inode.shared_from_this();
}

std::shared_ptr<Inode> InodeTable::keep(const nfs4::FileHandle& handle, uint64_t file_id) {
  if (handle == root_->handle) return root_;
  const std::lock_guard lock(mutex_);
  if (!kept_.keeps_any()) return nullptr;
  std::shared_ptr<Inode> inode = of_handle(handle, file_id).shared_from_this();
  if (inode->lookups == 0) kept_.add(*inode);
  erase_surplus();
  return inode;
}

Inode& InodeTable::of_handle(const nfs4::FileHandle& handle, uint64_t file_id) {
  std::shared_ptr<Inode>& inode = by_handle_[handle];
  if (!inode) {
    // Under the number it had: the kernel's users may have kept that (name_to_handle_at).
    const std::optional<uint64_t> known = past_.take(handle);
    inode = std::make_shared<Inode>(handle, file_id, known ? *known : ++last_node_);
    by_node_[inode->node] = inode.get();
  }
  return *inode;
}

std::vector<std::shared_ptr<Inode>> InodeTable::take_gone() {
  const std::lock_guard lock(mutex_);
  return std::exchange(gone_, {});
}

std::shared_ptr<Inode> InodeTable::find(uint64_t node) const {
  if (node == kRootNode) return root_;
  const std::lock_guard lock(mutex_);
  const auto found = by_node_.find(node);
  return found == by_node_.end() ? nullptr : found->second->shared_from_this();
}

std::shared_ptr<Inode> InodeTable::at(uint64_t node) const {
  if (node == kRootNode) return root_;
  const std::lock_guard lock(mutex_);
  const auto found = by_node_.find(node);
  CHECK(found != by_node_.end());
  return found->second->shared_from_this();
}

std::optional<nfs4::FileHandle> InodeTable::handle_of(uint64_t node) const {
  if (node == kRootNode) return root_->handle;
  const std::lock_guard lock(mutex_);
  const auto found = by_node_.find(node);
  return found != by_node_.end() ? found->second->handle : past_.handle_of(node);
}

std::shared_ptr<Inode> InodeTable::find(const nfs4::FileHandle& handle) const {
  if (handle == root_->handle) return root_;
  const std::lock_guard lock(mutex_);
  const auto found = by_handle_.find(handle);
  return found == by_handle_.end() ? nullptr : found->second;
}

void InodeTable::named(Inode& inode, const std::shared_ptr<const Inode>& directory, std::string_view name) {
  inode.named(directory, name);
  const uint64_t key = key_of(*directory, name);
  const std::lock_guard lock(mutex_);
  forget_name(inode);
  inode.name_key = key;
  node_of_name_[key] = inode.node;
}

std::shared_ptr<Inode> InodeTable::find(const Inode& directory, std::string_view name) const {
  const uint64_t key = key_of(directory, name);
  const std::lock_guard lock(mutex_);
  const auto node = node_of_name_.find(key);
  if (node == node_of_name_.end()) return nullptr;
  const auto found = by_node_.find(node->second);
  return found == by_node_.end() ? nullptr : found->second->shared_from_this();
}

void InodeTable::forget_name(const Inode& inode) {
  const auto found = node_of_name_.find(inode.name_key);
  if (found != node_of_name_.end() && found->second == inode.node) node_of_name_.erase(found);
}

void InodeTable::forget(uint64_t node, uint64_t lookups) {
  if (node == kRootNode) return;
  const std::shared_ptr<Inode> inode = at(node);
  const std::lock_guard lock(mutex_);
  CHECK(inode->lookups >= lookups);
  inode->lookups -= lookups;
  if (inode->lookups > 0) return;
  // In one step with that: who looks it up next tells the kernel of it anew.
  if (inode->forgotten_by_kernel() && kept_.keeps_any()) {
    kept_.add(*inode);
    erase_surplus();
  } else {
    erase(*inode);
  }
}

void InodeTable::erase(Inode& inode) {
  forget_name(inode);
  by_node_.erase(inode.node);
  past_.add(inode.node, inode.handle);
  const auto found = by_handle_.find(inode.handle);
  gone_.push_back(std::move(found->second));
  by_handle_.erase(found);
  ++forgotten_;
}

void InodeTable::erase_surplus() {
  while (Inode* const oldest = kept_.take_surplus()) erase(*oldest);
}

size_t InodeTable::size() const {
  const std::lock_guard lock(mutex_);
  return by_handle_.size() - kept_.size();
}

InodeTable::Kept InodeTable::kept() const {
  const std::lock_guard lock(mutex_);
  return {kept_.size(), kept_.bytes()};
}

std::vector<std::shared_ptr<Inode>> InodeTable::open_ones() const {
  std::vector<std::shared_ptr<Inode>> open;
  if (root_ && root_->is_open()) open.push_back(root_);
  const std::lock_guard lock(mutex_);
  for (const auto& [handle, inode] : by_handle_) {
    if (inode->is_open()) open.push_back(inode);
  }
  return open;
}

}  // namespace pnfsrdma::fuse_client
