// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include "shared/rdma/region.h"

namespace pnfsrdma::rdma {

// What a software transport knows of one registered range. Shared by the Region that owns it and by the work
// requests that use it; the Region decides when it dies. Thread-safe.
//
// Nobody touches the memory without a pin. A pin is held for one bounded step (a copy, a non-blocking system
// call, one piece of a flush) and never across anything that waits for a peer: that is what lets a Region's
// destructor promise that not one byte moves after it returns, at the price of one step's time.
class Registration {
 public:
  Registration(MutableByteSpan memory, uint32_t key, Access access, Flusher* flusher)
      : memory_(memory), key_(key), access_(access), flusher_(flusher) {}
  Registration(const Registration&) = delete;
  Registration& operator=(const Registration&) = delete;

  MutableByteSpan memory() const { return memory_; }
  uint32_t key() const { return key_; }
  Access access() const { return access_; }
  Flusher* flusher() const { return flusher_; }
  // Others store to it: a peer, or a program that has mapped it. Two looks at a byte may find two values.
  bool changes_under_way() const {
    return allows(access_, Access::kShared) || allows(access_, Access::kRemoteWrite);
  }

  // Peers address the memory by its address here. Safe for any input.
  uint64_t base() const { return reinterpret_cast<uintptr_t>(memory_.data()); }
  bool covers(uint64_t address, uint64_t length) const {
    if (address < base()) return false;
    uint64_t offset = address - base();
    return offset <= memory_.size() && length <= memory_.size() - offset;
  }
  // The byte with this address; covers() has said yes.
  std::byte* at(uint64_t address) const { return memory_.data() + (address - base()); }

  // False when the registration is dead: hands off.
  bool pin() {
    if ((state_.fetch_add(1, std::memory_order_acquire) & kDead) == 0) return true;
    unpin();
    return false;
  }
  void unpin() {
    if (state_.fetch_sub(1, std::memory_order_release) == (kDead | 1)) state_.notify_all();
  }
  bool dead() const { return (state_.load(std::memory_order_relaxed) & kDead) != 0; }
  // Refuses pins from now on and returns when the last one is gone.
  void retire();

 private:
  static constexpr uint32_t kDead = 1u << 31;

  const MutableByteSpan memory_;
  const uint32_t key_;
  const Access access_;
  Flusher* const flusher_;
  std::atomic<uint32_t> state_ = 0;  // pins, and kDead
};

// What one step of a flush takes at most: a disk writes it in a fraction of a second.
inline constexpr uint64_t kFlushPieceBytes = 16 << 20;

enum class Flushed { kYes, kFailed, kRegionDied };
// Has the registration's flusher flush the range, piece by piece, each with a pin of its own: however much it
// is, a Region is destroyed after one piece.
Flushed flush_by_pieces(Registration& registration, MutableByteSpan range);

// Holds a pin while it lives, if it got one.
class Pin {
 public:
  explicit Pin(Registration& registration) : registration_(registration.pin() ? &registration : nullptr) {}
  ~Pin() {
    if (registration_ != nullptr) registration_->unpin();
  }
  Pin(const Pin&) = delete;
  Pin& operator=(const Pin&) = delete;
  explicit operator bool() const { return registration_ != nullptr; }

 private:
  Registration* registration_;
};

}  // namespace pnfsrdma::rdma
