// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>

#include "shared/base/bytes.h"

namespace pnfsrdma::sim {

// The pages of a file that a kernel keeps: whole ones only. They go when it is told so at an open, and with each change
// of the file by this client.
class KeptPages {
 public:
  static constexpr uint64_t kBytes = 4096;

  // False: some are missing, and nothing is copied.
  bool copy(uint64_t offset, MutableByteSpan sink) const {
    if (sink.empty()) return false;
    for (uint64_t page = offset / kBytes; page * kBytes < offset + sink.size(); ++page)
      if (!pages_.contains(page)) return false;
    for (size_t at = 0; at < sink.size();) {
      const uint64_t inside = (offset + at) % kBytes;
      const size_t count = std::min<size_t>(kBytes - inside, sink.size() - at);
      std::copy_n(pages_.at((offset + at) / kBytes).begin() + static_cast<ptrdiff_t>(inside), count,
                  sink.begin() + static_cast<ptrdiff_t>(at));
      at += count;
    }
    return true;
  }
  // What was read while `generation` was the one.
  void fill(uint64_t generation, uint64_t offset, ByteSpan bytes) {
    if (generation != generation_) return;
    for (uint64_t page = (offset + kBytes - 1) / kBytes; (page + 1) * kBytes <= offset + bytes.size();
         ++page) {
      const ByteSpan whole = bytes.subspan(page * kBytes - offset, kBytes);
      pages_[page].assign(whole.begin(), whole.end());
    }
  }
  void drop() {
    pages_.clear();
    ++generation_;
  }
  uint64_t generation() const { return generation_; }

 private:
  std::map<uint64_t, Bytes> pages_;
  uint64_t generation_ = 0;
};

}  // namespace pnfsrdma::sim
