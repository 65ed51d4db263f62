// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <string>

#include "library/open_file.h"
#include "library/pnfsrdma.h"
#include "library/queue.h"

namespace pnfsrdma::library {

// A private image of a part of a file in registered memory: SNIA's NVM programming model with the memory at the
// other end of a network. What is stored in the image reaches the file by sync() and by nothing else, exactly
// the ranges that it is told; what others write is seen after refresh(). sync() and refresh() of one map are the
// caller's to serialize. The file outlives it.
class Map {
 public:
  // Zeros where the file has ended. `wanted`: where the image is to be, or null (Connection::allocate()).
  static Result<std::unique_ptr<Map>> make(OpenFile& file, uint64_t offset, size_t length, void* wanted);
  ~Map();
  Map(const Map&) = delete;
  Map& operator=(const Map&) = delete;

  OpenFile& file() { return file_; }
  void* address() const { return memory_; }

  // All at once, and durable when it returns. An error names those that may not be. EINVAL: a range is not inside.
  Result<> sync(std::span<const pnfsrdma_range> ranges);
  Result<> refresh(std::span<const pnfsrdma_range> ranges);

 private:
  Map(OpenFile& file, uint64_t offset, size_t length, void* memory);

  struct Flight;
  Result<> move(std::span<const pnfsrdma_range> ranges, uint32_t opcode, uint32_t flags);
  void submit(Flight& flight);
  void reap(Flight& flight);
  static std::string why(const Flight& flight);
  bool contains(const pnfsrdma_range& range) const {
    return range.offset <= length_ && range.length <= length_ - range.offset;
  }

  OpenFile& file_;
  const uint64_t offset_;
  const size_t length_;
  void* const memory_;
  std::unique_ptr<Queue> queue_;
};

}  // namespace pnfsrdma::library
