// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "shared/initiator/file/layout_segment.h"
#include "shared/nfs4/basic_types.h"

namespace pnfsrdma::initiator {

// Pieces of one I/O that are posted together.
inline constexpr size_t kPiecesMax = 16;

// An I/O that has passed the gate of a file's layouts, on the stack of its thread: while it is inside, its
// range is not returned. It holds copies of what it needs of the segments, so that they may change
// meanwhile.
class LayoutPin {
 public:
  LayoutPin() = default;
  LayoutPin(const LayoutPin&) = delete;
  LayoutPin& operator=(const LayoutPin&) = delete;

  // The range let in: from the offset asked for, possibly shorter than asked.
  uint64_t offset = 0;
  uint64_t length = 0;
  std::span<const LayoutSegment> pieces() const { return {pieces_.data(), count_}; }
  // The held range goes on contiguously up to here: when to fetch more.
  uint64_t held_end = 0;
  // LayoutCache::incarnation() and known_size() at the gate.
  uint64_t layout_incarnation = 0;
  uint64_t known_size = 0;
  nfs4::Stateid layout;
  // The I/O began where the last one ended; and all of them in a row, with this one, began here.
  bool sequential = false;
  uint64_t run_begin = 0;
  // A WRITE of it was posted and nobody has said that it arrived.
  bool unanswered = false;

 private:
  friend class LayoutCache;
  std::array<LayoutSegment, kPiecesMax> pieces_;
  size_t count_ = 0;
  bool is_flush_ = false;
  LayoutPin* next_ = nullptr;
  LayoutPin* previous_ = nullptr;
};

struct FileRange {
  uint64_t offset = 0;
  uint64_t length = 0;
  uint64_t end() const { return offset + length; }
  bool operator==(const FileRange&) const = default;
};

// The same for a flush of many ranges.
class FlushPin {
 public:
  std::vector<LayoutSegment> pieces;  // writable parts of the ranges
  std::vector<FileRange> missing;     // parts under no layout of ours, or behind a closed gate

 private:
  friend class LayoutCache;
  LayoutPin gate_;
};

}  // namespace pnfsrdma::initiator
