// SPDX-License-Identifier: Apache-2.0
#include "library/program_memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>

namespace pnfsrdma::library {
namespace {

constexpr size_t kPage = 4096;
constexpr uint32_t kDmaBufMagic = 0x444d4142;
// Linux 5.14.
constexpr int kPopulateWrite = 23;

bool is_whole_pages(const void* address, size_t size) {
  return size > 0 && size % kPage == 0 && reinterpret_cast<uintptr_t>(address) % kPage == 0;
}

bool may_populate() {
  static const bool may = [] {
    void* const page = ::mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const bool done = page != MAP_FAILED && ::madvise(page, kPage, kPopulateWrite) == 0;
    if (page != MAP_FAILED) (void)::munmap(page, kPage);
    return done;
  }();
  return may;
}

}  // namespace

Result<size_t> whole_pages(size_t size) {
  if (size > static_cast<size_t>(PTRDIFF_MAX) - kPage) return fail(ENOMEM, "memory of that size");
  return (std::max(size, size_t{1}) + kPage - 1) / kPage * kPage;
}

// Each page is touched: a transport would find out in the middle of an operation.
Result<> check_memory(MutableByteSpan memory) {
  if (!is_whole_pages(memory.data(), memory.size()))
    return fail(EINVAL, "only whole pages (4096 bytes) can be registered");
  if (!may_populate() || ::madvise(memory.data(), memory.size(), kPopulateWrite) == 0) return {};
  switch (errno) {
    case ENOMEM:
      return fail(EFAULT, "not all of it is mapped, or there is no memory for it");
    case EINVAL:
      return fail(EFAULT, "it may not be written, or is memory of a device, which no transport here reaches");
    default:
      return fail(EFAULT, "the file behind the mapping ends before it, or its memory is broken");
  }
}

Result<> check_memfd(int descriptor, size_t size) {
  struct statfs system{};
  if (::fstatfs(descriptor, &system) != 0) return std::unexpected(Error::from_errno("memfd"));
  if (static_cast<uint32_t>(system.f_type) == kDmaBufMagic)
    return fail(ENOTSUP,
                "a dma-buf: no transport of this connection reaches a device's memory; copy it to a memfd");
  const int seals = ::fcntl(descriptor, F_GET_SEALS);
  if (seals < 0) return fail(EINVAL, "not a memfd: memfd_create(2) with MFD_ALLOW_SEALING makes one");
  if ((seals & F_SEAL_SHRINK) == 0)
    return fail(EINVAL, "the memfd can be cut while it is in use: it needs F_SEAL_SHRINK");
  struct stat status{};
  if (::fstat(descriptor, &status) != 0) return std::unexpected(Error::from_errno("memfd"));
  if (size == 0 || size % kPage != 0) return fail(EINVAL, "only whole pages (4096 bytes) can be registered");
  if (static_cast<uint64_t>(status.st_size) < size)
    return fail(EINVAL, fmt::format("the memfd has {} bytes, not {}", status.st_size, size));
  return {};
}

Result<> keep_from_children(MutableByteSpan memory) {
  if (::madvise(memory.data(), memory.size(), MADV_DONTFORK) == 0) return {};
  if (errno == EINVAL) return fail(EINVAL, "only whole pages, of huge ones too, can be registered");
  return std::unexpected(Error::from_errno("madvise of registered memory"));
}

void leave_to_children(MutableByteSpan memory) {
  (void)::madvise(memory.data(), memory.size(), MADV_DOFORK);
}

Result<MutableByteSpan> map_pages(int descriptor, size_t size, void* wanted) {
  if (reinterpret_cast<uintptr_t>(wanted) % kPage != 0)
    return fail(EINVAL, "the address is not the beginning of a page (4096 bytes)");
  int flags = descriptor < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
  if (wanted != nullptr) flags |= MAP_FIXED_NOREPLACE;
  void* const memory = ::mmap(wanted, size, PROT_READ | PROT_WRITE, flags, descriptor, 0);
  if (memory == MAP_FAILED && errno == EEXIST)
    return fail(EEXIST, fmt::format("something is mapped at {} or behind it", fmt::ptr(wanted)));
  if (memory == MAP_FAILED) return std::unexpected(Error::from_errno("mapping memory"));
  return MutableByteSpan(static_cast<std::byte*>(memory), size);
}

}  // namespace pnfsrdma::library
