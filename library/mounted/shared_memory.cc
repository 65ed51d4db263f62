// SPDX-License-Identifier: Apache-2.0
#include "library/mounted/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "library/program_memory.h"

namespace pnfsrdma::library::mounted {

Result<std::unique_ptr<SharedMemory>> SharedMemory::make(Door& door, size_t size, void* wanted) {
  TRY_ASSIGN(const size_t whole, whole_pages(size));
  const FileDescriptor file(::memfd_create("libpnfsrdma", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file) return std::unexpected(Error::from_errno("memfd_create"));
  if (::ftruncate(file.get(), static_cast<off_t>(whole)) != 0)
    return std::unexpected(Error::from_errno("memory of that size"));
  // The mount would not survive if it shrank.
  if (::fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    return std::unexpected(Error::from_errno("sealing memory"));
  return share(door, file.get(), whole, wanted);
}

Result<std::unique_ptr<SharedMemory>> SharedMemory::share(Door& door, int memfd, size_t size, void* wanted) {
  TRY_ASSIGN(Mapping mapping, Mapping::make(memfd, size, wanted));
  TRY_ASSIGN(const uint32_t number, door.add_memory(memfd));
  return std::unique_ptr<SharedMemory>(new SharedMemory(door, std::move(mapping), number));
}

}  // namespace pnfsrdma::library::mounted
