// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "shared/base/bytes.h"

namespace pnfsrdma::bench {

// The memory both contenders use, touched before anything is measured: data goes from the small one to the
// large one, whoever asks for it.
struct Memory {
  static constexpr size_t kSmall = size_t{64} << 20;
  static constexpr size_t kLarge = size_t{1} << 30;

  static Bytes& source() {
    static Bytes bytes(kSmall, std::byte{1});
    return bytes;
  }
  static Bytes& destination() {
    static Bytes bytes(kLarge, std::byte{2});
    return bytes;
  }
  // A device pins what it registers: less of it.
  static Bytes& small_destination() {
    static Bytes bytes(kSmall, std::byte{2});
    return bytes;
  }
};

}  // namespace pnfsrdma::bench
