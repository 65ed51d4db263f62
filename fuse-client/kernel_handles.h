// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>

#include "shared/base/check.h"
#include "shared/base/sync.h"

namespace pnfsrdma::fuse_client {

// Objects that the kernel holds by the number in `fh`, from open to release. What it has not released when
// the mount ends (a signal, a lazy unmount) is freed with this table. Thread-safe.
template <typename Object>
class KernelHandles {
 public:
  // The number for `fh`: the object's address.
  uint64_t give(std::unique_ptr<Object> object) {
    const auto handle = reinterpret_cast<uint64_t>(object.get());
    const std::lock_guard lock(mutex_);
    given_.emplace(handle, std::move(object));
    return handle;
  }
  std::unique_ptr<Object> take_back(uint64_t handle) {
    const std::lock_guard lock(mutex_);
    auto node = given_.extract(handle);
    CHECK(!node.empty());  // the kernel releases what it has got, once
    return std::move(node.mapped());
  }

 private:
  Mutex mutex_;
  std::unordered_map<uint64_t, std::unique_ptr<Object>> given_;
};

}  // namespace pnfsrdma::fuse_client
