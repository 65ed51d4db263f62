// SPDX-License-Identifier: Apache-2.0
#include "library/memory.h"

#include <mutex>
#include <shared_mutex>

namespace pnfsrdma::library {

Result<void*> Memory::allocate(size_t size) {
  TRY_ASSIGN(auto buffer, data_path_.make_buffer(size));
  std::byte* const address = buffer->data();
  const std::lock_guard lock(mutex_);
  buffers_.emplace(address, std::move(buffer));
  return address;
}

bool Memory::free(void* address) {
  std::unique_ptr<initiator::Buffer> gone;  // unregistered without the lock
  const std::lock_guard lock(mutex_);
  const auto found = buffers_.find(static_cast<std::byte*>(address));
  if (found == buffers_.end()) return false;
  gone = std::move(found->second);
  buffers_.erase(found);
  return true;
}

std::optional<initiator::BufferSlice> Memory::find(const void* address, size_t size) const {
  const auto* const first = static_cast<const std::byte*>(address);
  const std::shared_lock lock(mutex_);
  auto next = buffers_.upper_bound(const_cast<std::byte*>(first));
  if (next == buffers_.begin()) return std::nullopt;
  const auto& [start, buffer] = *--next;
  const auto offset = static_cast<size_t>(first - start);
  if (offset > buffer->size() || size > buffer->size() - offset) return std::nullopt;
  return buffer->slice(offset, size);
}

}  // namespace pnfsrdma::library
