// SPDX-License-Identifier: Apache-2.0
#include "library/mounted/mapping.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>

#include "library/program_memory.h"

namespace pnfsrdma::library::mounted {

Result<Mapping> Mapping::make(int descriptor, size_t size, void* wanted) {
  struct stat status{};
  if (::fstat(descriptor, &status) != 0) return std::unexpected(Error::from_errno("shared memory"));
  if (static_cast<uint64_t>(status.st_size) < size) return fail(EPROTO, "shared memory that is too short");
  TRY_ASSIGN(const MutableByteSpan memory, map_pages(descriptor, size, wanted));
  Mapping mapping(memory);
  TRY(keep_from_children(memory));
  return mapping;
}

Mapping::~Mapping() {
  if (!bytes_.empty()) (void)::munmap(bytes_.data(), bytes_.size());
}

}  // namespace pnfsrdma::library::mounted
