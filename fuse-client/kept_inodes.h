// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <list>
#include <memory>
#include <unordered_map>
#include <vector>

namespace pnfsrdma::fuse_client {

class Inode;

// The order of the inodes that the InodeTable keeps although the kernel does not know them: the one that was used
// longest ago goes first when they take more than `bytes_max` together. Not thread-safe.
class KeptInodes {
 public:
  explicit KeptInodes(size_t bytes_max) : bytes_max_(bytes_max) {}

  bool keeps_any() const { return bytes_max_ > 0; }
  // As the newest one; one that is there already becomes that.
  void add(Inode& inode);
  // The kernel knows it again.
  void remove(const Inode& inode);
  // The oldest one, no longer kept; null: all have room.
  Inode* take_surplus();
  size_t size() const { return places_.size(); }
  size_t bytes() const { return bytes_; }

 private:
  struct Kept {
    Inode* inode = nullptr;
    size_t bytes = 0;
  };
  using Order = std::list<Kept>;  // the newest at the end

  const size_t bytes_max_;
  Order order_;
  std::unordered_map<const Inode*, Order::iterator> places_;
  size_t bytes_ = 0;
};

}  // namespace pnfsrdma::fuse_client
