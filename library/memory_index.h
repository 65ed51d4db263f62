// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <utility>

#include "shared/base/bytes.h"
#include "shared/base/result.h"
#include "shared/base/sync.h"

namespace pnfsrdma::library {

// Whose memory it is: pnfsrdma_free()'s, or pnfsrdma_unregister()'s.
enum class MemoryOwner : uint8_t { kLibrary, kProgram };

// A program's registered memory, found by address. `Memory` has data() and size(). Thread-safe.
template <typename Memory>
class MemoryIndex {
  struct Entry {
    std::unique_ptr<Memory> memory;
    MemoryOwner owner;
    std::atomic<uint32_t> uses = 0;
  };

 public:
  // Where it begins. EEXIST: a part of it is in here already.
  Result<void*> add(std::unique_ptr<Memory> memory, MemoryOwner owner) {
    std::byte* const begin = memory->data();
    std::byte* const end = begin + memory->size();
    const std::lock_guard lock(mutex_);
    TRY(check_free(begin, end));
    Entry& entry = all_[begin];
    entry.memory = std::move(memory);
    entry.owner = owner;
    return begin;
  }

  // What add() would say.
  Result<> check_free(MutableByteSpan memory) const {
    const std::shared_lock lock(mutex_);
    return check_free(memory.data(), memory.data() + memory.size());
  }

  // The caller destroys it, without the lock. EINVAL: nothing of that owner begins at `address`. EBUSY: something is
  // under way from or to it.
  Result<std::unique_ptr<Memory>> remove(void* address, MemoryOwner owner) {
    const std::lock_guard lock(mutex_);
    const auto found = all_.find(static_cast<std::byte*>(address));
    if (found == all_.end() || found->second.owner != owner)
      return fail(EINVAL, owner == MemoryOwner::kLibrary ? "not from pnfsrdma_alloc()"
                                                         : "not registered by pnfsrdma_register()");
    // Nobody begins to use it: that takes the lock.
    if (found->second.uses.load(std::memory_order_acquire) > 0)
      return fail(EBUSY, "operations from or to the memory are under way");
    auto memory = std::move(found->second.memory);
    all_.erase(found);
    return memory;
  }

  // A part of it, which stays while this lives. Movable.
  class Use {
   public:
    Use() = default;
    Use(Use&& other) noexcept
        : entry_(std::exchange(other.entry_, nullptr)), offset_(std::exchange(other.offset_, 0)) {}
    Use& operator=(Use&& other) noexcept {
      if (this == &other) return *this;
      end();
      entry_ = std::exchange(other.entry_, nullptr);
      offset_ = std::exchange(other.offset_, 0);
      return *this;
    }
    ~Use() { end(); }

    explicit operator bool() const { return entry_ != nullptr; }
    const Memory& memory() const { return *entry_->memory; }
    size_t offset() const { return offset_; }
    void end() {
      if (Entry* const entry = std::exchange(entry_, nullptr))
        entry->uses.fetch_sub(1, std::memory_order_release);
    }

   private:
    friend class MemoryIndex;
    Use(Entry& entry, size_t offset) : entry_(&entry), offset_(offset) {
      entry.uses.fetch_add(1, std::memory_order_relaxed);
    }

    Entry* entry_ = nullptr;
    size_t offset_ = 0;
  };
  // None: at least one byte of it is not registered.
  Use find(const void* address, size_t size) {
    auto* const first = static_cast<std::byte*>(const_cast<void*>(address));
    const std::shared_lock lock(mutex_);
    auto next = all_.upper_bound(first);
    if (next == all_.begin()) return {};
    Entry& entry = (--next)->second;
    const auto offset = static_cast<size_t>(first - next->first);
    if (offset > entry.memory->size() || size > entry.memory->size() - offset) return {};
    return Use(entry, offset);
  }

 private:
  // Under mutex_.
  Result<> check_free(const std::byte* begin, std::byte* end) const {
    const auto behind = all_.lower_bound(end);
    if (behind == all_.begin()) return {};
    const Memory& before = *std::prev(behind)->second.memory;
    if (before.data() + before.size() <= begin) return {};
    return fail(EEXIST, "some of that memory is registered already");
  }

  mutable SharedMutex mutex_;
  std::map<std::byte*, Entry> all_;
};

}  // namespace pnfsrdma::library
