// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace pnfsrdma::nfs4 {

// Bytes of a file and how they are locked. Both ends belong to it, so that a range can reach the last byte a
// file may have.
struct LockRange {
  uint64_t first = 0;
  uint64_t last = 0;
  bool exclusive = false;
  bool operator==(const LockRange&) const = default;
};

// offset4 and length4 of a lock (RFC 8881, 18.10.3): all ones means to the end of the file, however long it
// grows. Nothing for what is INVAL: no bytes, or more than there are.
std::optional<LockRange> lock_range(uint64_t offset, uint64_t length, bool exclusive);
// The length4 of it.
uint64_t length_of(const LockRange& range);

// Of one owner in one file our server keeps so many, and a mount that decides for it.
inline constexpr size_t kLockRangesMax = 2048;

// The ranges one owner has locked in one file, as POSIX has it: a byte has one mode, the newest; neighbours
// of one mode are one range. A value.
class RangeLocks {
 public:
  // Locks `range`: what was locked differently in it changes its mode.
  void lock(const LockRange& range);
  // Unlocks the bytes of `range`, whether they were locked or not. Its mode does not matter.
  void unlock(const LockRange& range);
  // The first of these that another owner's lock on `wanted` collides with: they share bytes, and one of them
  // is exclusive. Null if none.
  const LockRange* conflict(const LockRange& wanted) const;

  bool empty() const { return ranges_.empty(); }
  // In order of their bytes.
  const std::vector<LockRange>& all() const { return ranges_; }

 private:
  std::vector<LockRange> ranges_;
};

}  // namespace pnfsrdma::nfs4
