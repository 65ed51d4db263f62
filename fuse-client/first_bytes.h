// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "shared/base/bytes.h"
#include "shared/base/clock.h"

namespace pnfsrdma::fuse_client {

// The whole of a small file as the COMPOUND of its OPEN has read it, for the reads of that open: one call to the
// server instead of two. Immutable.
struct FirstBytes {
  // Larger files are read by themselves. The reply of an OPEN is kept by the server for a replay, of which few are
  // larger than this.
  static constexpr uint64_t kSizeMax = 4096;

  Bytes bytes;
  SteadyTime asked_at;
  // What Inode::is_as_read() compares.
  uint64_t change = 0;
  uint64_t data_changes = 0;

  // The part of `sink` that was filled. None: it begins behind the end.
  std::optional<size_t> copy(uint64_t offset, MutableByteSpan sink) const {
    if (offset >= bytes.size()) return std::nullopt;
    const size_t count = std::min<size_t>(sink.size(), bytes.size() - offset);
    std::copy_n(bytes.begin() + static_cast<ptrdiff_t>(offset), count, sink.begin());
    return count;
  }
};

// How many OPENs read at a time: a silent brick keeps them from being answered, and no more workers than this may
// wait for one (device_lines.h).
class FirstReads {
 public:
  // One of them, while it lives.
  class Place {
   public:
    explicit Place(std::atomic<uint32_t>* count) : count_(count) {}
    Place(Place&& other) noexcept : count_(std::exchange(other.count_, nullptr)) {}
    Place& operator=(Place&&) = delete;
    ~Place() {
      if (count_ != nullptr) --*count_;
    }

   private:
    std::atomic<uint32_t>* count_;
  };

  explicit FirstReads(uint32_t most) : most_(most) {}
  std::optional<Place> enter() {
    if (++count_ <= most_) return Place(&count_);
    --count_;
    return std::nullopt;
  }

 private:
  const uint32_t most_;
  std::atomic<uint32_t> count_ = 0;
};

}  // namespace pnfsrdma::fuse_client
