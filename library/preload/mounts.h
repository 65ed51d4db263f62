// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "library/preload/mount_ring.h"

namespace pnfsrdma::preload {

// The file systems that this process has met, and its rings with those that are mounts of ours. For signal handlers,
// too.
class Mounts {
 public:
  static constexpr uint32_t kNone = UINT32_MAX, kLater = UINT32_MAX - 1;

  // The mount that the open file is on, by its device: each is asked once. kNone: it is none of ours, or does not let
  // this process in. kLater: somebody is asking just now.
  uint32_t of(int file, uint64_t device);
  // Of a mount that was met: nullptr where its process has put us out.
  MountRing* ring(uint32_t mount);
  // In a child.
  void abandon();

 private:
  enum : uint32_t { kUnknown, kAsking, kOurs, kForeign };
  struct Device {
    std::atomic<uint64_t> number = 0;
    std::atomic<uint32_t> state = kUnknown;
    MountRing ring;
  };
  std::array<Device, 16> devices_;
};

}  // namespace pnfsrdma::preload
