// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace pnfsrdma::preload {

// Why the kernel did what a descriptor of a mount was asked for.
enum class Reason : uint8_t {
  kAppend,      // O_APPEND
  kSync,        // O_SYNC: metadata, too
  kLength,      // too long for a place, or nothing
  kEnd,         // at the end of the file: a short read, growth
  kCached,      // the kernel has pages of it, and perhaps the only ones
  kUnsure,      // whether it has is not to be found out, and the descriptor is not of O_DIRECT
  kSequence,    // a read behind the last one: the kernel reads ahead
  kKept,        // the user wants the kernel to keep what is read
  kAlone,       // nothing else is under way: it takes as long either way, and the kernel keeps what it reads
  kShared,      // its position is shared with a child
  kPrivileges,  // set-id bits to clear
  kLimit,       // RLIMIT_FSIZE
  kFlags,       // of preadv2(2), pwritev2(2)
  kRefused,     // by the mount
  kHandedBack,  // by the mount: it would have to wait, to ask the server, or has an error to tell
  kGone,        // the mount's process, or the connection with it
};
inline constexpr size_t kReasons = 16;

// What went which way. For signal handlers, too.
class Statistics {
 public:
  void by_ring(bool is_read, size_t bytes) {
    ++(is_read ? ring_reads_ : ring_writes_);
    ring_bytes_ += bytes;
  }
  void by_kernel(Reason reason) { ++kernel_[static_cast<size_t>(reason)]; }

  // One line of words "name=number". Its length; less than `size`.
  size_t print(char* text, size_t size) const;

 private:
  std::atomic<uint64_t> ring_reads_ = 0, ring_writes_ = 0, ring_bytes_ = 0;
  std::array<std::atomic<uint64_t>, kReasons> kernel_;
};

}  // namespace pnfsrdma::preload
