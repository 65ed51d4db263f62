// SPDX-License-Identifier: Apache-2.0
#include "shared/pmem/page_persistence.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cstring>

namespace pnfsrdma::pmem {

void SyncPersistence::copy(std::byte* target, ByteSpan source) {
  std::memcpy(target, source.data(), source.size());
}

void SyncPersistence::zero(MutableByteSpan target) {
  std::memset(target.data(), 0, target.size());
}

SyncPersistence::SyncPersistence(int fd, const std::byte* base, uint64_t offset)
    : base_(base), offset_(offset) {
  struct statfs system{};
  if (fstatfs(fd, &system) != 0) return;
  if (system.f_type == EXT4_SUPER_MAGIC || system.f_type == XFS_SUPER_MAGIC) fd_ = fd;
}

// sync_file_range(2): pages only, neither metadata nor the disk's cache.
Result<> SyncPersistence::write_back(ByteSpan memory, unsigned how) const {
  const auto at = static_cast<off_t>(offset_) + (memory.data() - base_);
  if (sync_file_range(fd_, at, static_cast<off_t>(memory.size()), how) == 0) return {};
  return std::unexpected(Error::from_errno(fmt::format("write-back of {} bytes of the pool", memory.size())));
}

// 2 N + 1 system calls for N ranges.
Result<> SyncPersistence::persist_all(std::span<const ByteSpan> ranges) {
  if (fd_ < 0 || ranges.size() < 2) return Persistence::persist_all(ranges);
  for (const ByteSpan& range : ranges) TRY(write_back(range, SYNC_FILE_RANGE_WRITE));
  // The last one by msync, which commits what all of them have changed in the file's map.
  for (const ByteSpan& range : ranges.first(ranges.size() - 1)) {
    // Again, and after those under way: a page may have been on its way to the disk when it was changed.
    TRY(write_back(range, SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER));
  }
  return flush(ranges.back());
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
