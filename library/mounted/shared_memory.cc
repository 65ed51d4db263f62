// SPDX-License-Identifier: Apache-2.0
#include "library/mounted/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace pnfsrdma::library::mounted {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kSizeMax = PTRDIFF_MAX;

}  // namespace

Result<std::unique_ptr<SharedMemory>> SharedMemory::make(Door& door, size_t size) {
  if (size > kSizeMax - kPage) return fail(ENOMEM, "memory of that size");
  const size_t whole = (std::max(size, size_t{1}) + kPage - 1) / kPage * kPage;
  const FileDescriptor file(::memfd_create("libpnfsrdma", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file) return std::unexpected(Error::from_errno("memfd_create"));
  if (::ftruncate(file.get(), static_cast<off_t>(whole)) != 0)
    return std::unexpected(Error::from_errno("memory of that size"));
  // The mount would not survive if it shrank.
  if (::fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    return std::unexpected(Error::from_errno("sealing memory"));
  TRY_ASSIGN(Mapping mapping, Mapping::make(file.get(), whole));
  TRY_ASSIGN(const uint32_t number, door.add_memory(file.get()));
  return std::unique_ptr<SharedMemory>(new SharedMemory(door, std::move(mapping), number));
}

}  // namespace pnfsrdma::library::mounted
