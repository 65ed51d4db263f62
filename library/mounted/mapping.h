// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <utility>

#include "shared/base/bytes.h"
#include "shared/base/result.h"

namespace pnfsrdma::library::mounted {

// Memory that this process and the mount have mapped: all of a descriptor's. A child of a fork(2) has it not. Movable.
class Mapping {
 public:
  // At `wanted`, or where that is null anywhere. EPROTO: the descriptor's file is shorter than `size`. Errors:
  // ENOMEM, and as map_pages().
  static Result<Mapping> make(int descriptor, size_t size, void* wanted = nullptr);
  Mapping(Mapping&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
  Mapping& operator=(Mapping&&) = delete;
  ~Mapping();

  MutableByteSpan bytes() const { return bytes_; }

 private:
  explicit Mapping(MutableByteSpan bytes) : bytes_(bytes) {}

  MutableByteSpan bytes_;
};

}  // namespace pnfsrdma::library::mounted
