// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>

#include "shared/base/sync.h"

namespace pnfsrdma::library {

// A program's registered memory, found by address. `Memory` has data() and size(). Thread-safe.
template <typename Memory>
class MemoryIndex {
 public:
  // Where it begins.
  void* add(std::unique_ptr<Memory> memory) {
    std::byte* const address = memory->data();
    const std::lock_guard lock(mutex_);
    all_.emplace(address, std::move(memory));
    return address;
  }

  // Null: nothing begins at `address`. The caller destroys it, without the lock.
  std::unique_ptr<Memory> remove(void* address) {
    const std::lock_guard lock(mutex_);
    const auto found = all_.find(static_cast<std::byte*>(address));
    if (found == all_.end()) return nullptr;
    auto memory = std::move(found->second);
    all_.erase(found);
    return memory;
  }

  struct Place {
    const Memory* memory = nullptr;  // lives, as what it is used by is under way
    size_t offset = 0;
  };
  // None: at least one byte of it is not registered.
  std::optional<Place> find(const void* address, size_t size) const {
    auto* const first = static_cast<std::byte*>(const_cast<void*>(address));
    const std::shared_lock lock(mutex_);
    auto next = all_.upper_bound(first);
    if (next == all_.begin()) return std::nullopt;
    const auto& [start, memory] = *--next;
    const auto offset = static_cast<size_t>(first - start);
    if (offset > memory->size() || size > memory->size() - offset) return std::nullopt;
    return Place{memory.get(), offset};
  }

 private:
  mutable SharedMutex mutex_;
  std::map<std::byte*, std::unique_ptr<Memory>> all_;
};

}  // namespace pnfsrdma::library
