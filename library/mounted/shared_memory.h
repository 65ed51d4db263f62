// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>

#include "library/mounted/door.h"
#include "library/mounted/mapping.h"

namespace pnfsrdma::library::mounted {

// Memory of this process that the mount has mapped and registered, too. The door must outlive it.
class SharedMemory {
 public:
  // Whole pages, one at least. Errors: ENOMEM, what the mount says (memlock), and as map_pages().
  static Result<std::unique_ptr<SharedMemory>> make(Door& door, size_t size, void* wanted = nullptr);
  // The first `size` bytes of a memfd that check_memfd() has found fit.
  static Result<std::unique_ptr<SharedMemory>> share(Door& door, int memfd, size_t size, void* wanted);
  ~SharedMemory() { door_.remove_memory(number_); }
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  std::byte* data() const { return mapping_.bytes().data(); }
  size_t size() const { return mapping_.bytes().size(); }
  uint32_t number() const { return number_; }  // as the mount calls it

 private:
  SharedMemory(Door& door, Mapping mapping, uint32_t number)
      : door_(door), mapping_(std::move(mapping)), number_(number) {}

  Door& door_;
  const Mapping mapping_;
  const uint32_t number_;
};

}  // namespace pnfsrdma::library::mounted
