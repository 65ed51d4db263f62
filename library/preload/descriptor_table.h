// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace pnfsrdma::preload {

// What is known of an open file that went to a mount: who it is, so that a descriptor that leads elsewhere by now is
// noticed, and how the mount calls it.
struct Attached {
  uint32_t mount = 0;
  uint32_t file = 0;
  uint64_t device = 0;
  uint64_t inode = 0;
};

// Of each descriptor of this process: what is known. Nothing here is believed: a program closes descriptors by ways
// that nobody sees, so whoever looks a descriptor up asks the kernel what it is now. No locks, no heap: for signal
// handlers.
class DescriptorTable {
 public:
  static constexpr int kDescriptors = 65536;  // those above are the kernel's

  enum class State : uint32_t {
    kUnknown,   // not opened by this process, or of no interest
    kOpened,    // by this process, since its last fork(2) or before
    kAttached,  // and known to the mount
    kRefused,   // by the mount
  };
  struct Entry {
    State state = State::kUnknown;
    bool is_shared = false;  // with a child: its position is not this process's alone
    Attached attached;
  };

  // One load: whether there is anything to look up.
  bool knows(int descriptor) const {
    return static_cast<unsigned>(descriptor) < kDescriptors &&
           slots_[static_cast<size_t>(descriptor)].state.load(std::memory_order_relaxed) != 0;
  }
  Entry find(int descriptor) const;

  void opened(int descriptor);
  void attached(int descriptor, const Attached& attached);
  void refused(int descriptor);
  void forget(int descriptor);
  // dup(2).
  void copied(int from, int to);

  // fork(2): in the parent, in the child.
  void share_all() { shared_before_.store(next_birth(), std::memory_order_relaxed); }
  void forget_all() { forgotten_before_.store(next_birth(), std::memory_order_relaxed); }

  // Where a read in sequence would begin.
  uint64_t next_read(int descriptor) const {
    return slots_[static_cast<size_t>(descriptor)].next_read.load(std::memory_order_relaxed);
  }
  void read_up_to(int descriptor, uint64_t end) {
    slots_[static_cast<size_t>(descriptor)].next_read.store(end, std::memory_order_relaxed);
  }

 private:
  struct alignas(64) Slot {
    std::atomic<uint32_t> version = 0;  // odd while it is written
    std::atomic<uint32_t> state = 0;
    std::atomic<uint64_t> birth = 0;
    std::atomic<uint32_t> mount = 0, file = 0;
    std::atomic<uint64_t> device = 0, inode = 0;
    std::atomic<uint64_t> next_read = 0;
  };

  uint64_t next_birth() { return births_.fetch_add(1, std::memory_order_relaxed) + 1; }
  void store(int descriptor, State state, const Attached& attached, uint64_t birth);

  std::array<Slot, kDescriptors> slots_;
  std::atomic<uint64_t> births_ = 0, shared_before_ = 0, forgotten_before_ = 0;
};

}  // namespace pnfsrdma::preload
