// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace pnfsrdma::mds {

// Bytes [begin, end) of a file or of a brick's address space. Empty when end <= begin.
struct ByteRange {
  uint64_t begin = 0;
  uint64_t end = 0;

  bool empty() const { return end <= begin; }
  uint64_t length() const { return empty() ? 0 : end - begin; }
  bool overlaps(const ByteRange& other) const {
    return begin < other.end && other.begin < end && !empty() && !other.empty();
  }
  bool contains(const ByteRange& other) const { return begin <= other.begin && other.end <= end; }
  bool operator==(const ByteRange&) const = default;
};

ByteRange intersection(const ByteRange& a, const ByteRange& b);
// [offset, offset + length) where a sum past 2^64-1, and the length 2^64-1 of the protocol, mean "to the
// end".
ByteRange range_of(uint64_t offset, uint64_t length);

inline constexpr uint64_t kEndOfFile = UINT64_MAX;

// A set of bytes, kept as disjoint ranges that do not touch. A value.
class RangeSet {
 public:
  void add(const ByteRange& range);
  void remove(const ByteRange& range);
  bool empty() const { return ranges_.empty(); }
  bool overlaps(const ByteRange& range) const;
  bool contains(const ByteRange& range) const;
  // The members inside `range`, in order, clipped to it; the first `most` of them.
  std::vector<ByteRange> within(const ByteRange& range, size_t most = SIZE_MAX) const;
  // From the first byte to behind the last one.
  ByteRange hull() const;
  // The member that holds `offset`, from there to its end.
  std::optional<ByteRange> from(uint64_t offset) const;
  std::vector<ByteRange> all() const { return within({0, kEndOfFile}); }

 private:
  std::map<uint64_t, uint64_t> ranges_;  // begin to end
};

}  // namespace pnfsrdma::mds
