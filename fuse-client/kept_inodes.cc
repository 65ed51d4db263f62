// SPDX-License-Identifier: Apache-2.0
#include "fuse-client/kept_inodes.h"

#include "fuse-client/inode.h"

namespace pnfsrdma::fuse_client {

void KeptInodes::add(Inode& inode) {
  remove(inode);
  const size_t bytes = inode.memory();
  places_[&inode] = order_.insert(order_.end(), {&inode, bytes});
  bytes_ += bytes;
}

void KeptInodes::remove(const Inode& inode) {
  const auto found = places_.find(&inode);
  if (found == places_.end()) return;
  bytes_ -= found->second->bytes;
  order_.erase(found->second);
  places_.erase(found);
}

Inode* KeptInodes::take_surplus() {
  if (bytes_ <= bytes_max_) return nullptr;
  Inode* const oldest = order_.front().inode;
  remove(*oldest);
  return oldest;
}

}  // namespace pnfsrdma::fuse_client
