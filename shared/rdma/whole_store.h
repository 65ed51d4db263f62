// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "shared/rdma/transport.h"

namespace pnfsrdma::rdma {

// Whether `length` bytes at `address` are what one store can place.
inline bool is_whole(const std::byte* address, uint32_t length) {
  return length == kAtomicWriteSize && reinterpret_cast<uintptr_t>(address) % kAtomicWriteSize == 0;
}

// How a software responder places an ATOMIC WRITE: by one store, which whoever loads the new value finds
// behind everything this thread placed earlier. `target` is aligned and pinned.
inline void store_whole(std::byte* target, uint64_t value) {
  std::atomic_ref<uint64_t>(*reinterpret_cast<uint64_t*>(target)).store(value, std::memory_order_release);
}

}  // namespace pnfsrdma::rdma
