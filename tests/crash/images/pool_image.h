// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include "shared/base/bytes.h"

namespace pnfsrdma::crash {

// The content of a pool: mostly zeros, so the pages that are not. A value.
class PoolImage {
 public:
  PoolImage() = default;
  explicit PoolImage(ByteSpan bytes) : size_(bytes.size()) {
    static constexpr std::array<std::byte, kPage> kZeros{};
    for (size_t at = 0; at < bytes.size(); at += kPage) {
      const ByteSpan page = bytes.subspan(at, std::min(kPage, bytes.size() - at));
      if (std::memcmp(page.data(), kZeros.data(), page.size()) != 0)
        pages_.emplace_back(at, Bytes(page.begin(), page.end()));
    }
  }

  size_t size() const { return size_; }
  // Into zeroed memory of the same size.
  void write_to(MutableByteSpan zeroed) const {
    for (const auto& [at, page] : pages_) std::memcpy(zeroed.data() + at, page.data(), page.size());
  }

 private:
  static constexpr size_t kPage = 4096;
  size_t size_ = 0;
  std::vector<std::pair<size_t, Bytes>> pages_;
};

}  // namespace pnfsrdma::crash
