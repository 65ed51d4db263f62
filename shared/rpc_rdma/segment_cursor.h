// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <optional>
#include <span>

#include "shared/rdma/region.h"
#include "shared/rpc_rdma/header.h"

namespace pnfsrdma::rpc_rdma {

// Walks the bytes of a peer's segments from the first to the last. The segments must outlive it.
class SegmentCursor {
 public:
  explicit SegmentCursor(std::span<const Segment> segments) : segments_(segments) {}

  // The next bytes that lie together, at most `longest`. Nothing at the end.
  std::optional<rdma::RemoteSlice> next(uint64_t longest) {
    while (index_ < segments_.size() && used_ == segments_[index_].length) {
      ++index_;
      used_ = 0;
    }
    if (index_ == segments_.size() || longest == 0) return std::nullopt;
    const Segment& segment = segments_[index_];
    const auto length = static_cast<uint32_t>(std::min<uint64_t>(longest, segment.length - used_));
    const rdma::RemoteSlice slice{segment.offset + used_, length, segment.handle};
    used_ += length;
    return slice;
  }

 private:
  std::span<const Segment> segments_;
  size_t index_ = 0;
  uint32_t used_ = 0;  // of segments_[index_]
};

// The segments with only the lengths that `bytes` have filled, as a responder returns a chunk (RFC
// 8166, 4.3.2).
inline WriteChunk filled(WriteChunk chunk, uint64_t bytes) {
  for (Segment& segment : chunk) {
    segment.length = static_cast<uint32_t>(std::min<uint64_t>(segment.length, bytes));
    bytes -= segment.length;
  }
  return chunk;
}

}  // namespace pnfsrdma::rpc_rdma
