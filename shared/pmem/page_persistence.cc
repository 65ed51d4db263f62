// SPDX-License-Identifier: Apache-2.0
#include "shared/pmem/page_persistence.h"

#include <fmt/core.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

namespace pnfsrdma::pmem {

void SyncPersistence::copy(std::byte* target, ByteSpan source) {
  std::memcpy(target, source.data(), source.size());
}

void SyncPersistence::zero(MutableByteSpan target) {
  std::memset(target.data(), 0, target.size());
}

// One system call, whatever the length. The kernel writes back dirty pages only.
Result<> SyncPersistence::flush(ByteSpan memory) {
  if (memory.empty()) return {};
  static const uintptr_t page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<uintptr_t>(memory.data()) & ~(page - 1);
  const auto end = reinterpret_cast<uintptr_t>(memory.data() + memory.size());
  if (msync(reinterpret_cast<void*>(begin), end - begin, MS_SYNC) != 0) {
    return std::unexpected(Error::from_errno(fmt::format("msync of {} bytes of the pool", end - begin)));
  }
  return {};
}

void UnflushedPersistence::copy(std::byte* target, ByteSpan source) {
  std::memcpy(target, source.data(), source.size());
}

void UnflushedPersistence::zero(MutableByteSpan target) {
  std::memset(target.data(), 0, target.size());
}

}  // namespace pnfsrdma::pmem
