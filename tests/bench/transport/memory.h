// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "shared/base/bytes.h"

namespace pnfsrdma::bench {

// The memory both contenders use, touched before anything is measured.
struct Memory {
  static Bytes& local() {
    static Bytes bytes(size_t{64} << 20, std::byte{1});
    return bytes;
  }
  static Bytes& remote(uint64_t size) {
    static Bytes bytes(size, std::byte{2});
    return bytes;
  }
};

}  // namespace pnfsrdma::bench
