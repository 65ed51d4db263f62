// SPDX-License-Identifier: Apache-2.0
#include "library/mounted/mapping.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>

namespace pnfsrdma::library::mounted {

Result<Mapping> Mapping::make(int descriptor, size_t size) {
  struct stat status{};
  if (::fstat(descriptor, &status) != 0) return std::unexpected(Error::from_errno("shared memory"));
  if (static_cast<uint64_t>(status.st_size) < size) return fail(EPROTO, "shared memory that is too short");
  void* const address = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (address == MAP_FAILED) return std::unexpected(Error::from_errno("mapping shared memory"));
  Mapping mapping({static_cast<std::byte*>(address), size});
  if (::madvise(address, size, MADV_DONTFORK) != 0)
    return std::unexpected(Error::from_errno("mapping shared memory"));
  return mapping;
}

Mapping::~Mapping() {
  if (!bytes_.empty()) (void)::munmap(bytes_.data(), bytes_.size());
}

}  // namespace pnfsrdma::library::mounted
