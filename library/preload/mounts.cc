// SPDX-License-Identifier: Apache-2.0
#include "library/preload/mounts.h"

#include <sys/sysmacros.h>
#include <sys/vfs.h>

namespace pnfsrdma::preload {
namespace {

constexpr unsigned long kFuse = 0x65735546;
constexpr uint64_t kRetired = UINT64_MAX;  // no device has that number

bool is_fuse(int file, uint64_t device) {
  struct statfs system{};
  return ::gnu_dev_major(device) == 0 && kernel(SYS_fstatfs, file, &system) == 0 &&
         static_cast<unsigned long>(system.f_type) == kFuse;
}

bool enter(MountRing& ring, int file) {
  ring::Find found;
  return kernel(SYS_ioctl, file, ring::kFind, &found) == 0 && found.version == ring::kVersion &&
         ring.connect(found);
}

}  // namespace

uint32_t Mounts::of(int file, uint64_t device) {
  for (uint32_t i = 0; i < devices_.size(); ++i) {
    Device& each = devices_[i];
    uint64_t number = 0;
    // 0 is no device of a file.
    if (!each.number.compare_exchange_strong(number, device) && number != device) continue;
    // Mounted anew, perhaps: whoever waits there does not mind a second entry.
    if (each.state.load(std::memory_order_acquire) == kOurs && each.ring.is_gone()) {
      each.number = kRetired;
      continue;
    }
    uint32_t state = kUnknown;
    if (each.state.compare_exchange_strong(state, kAsking)) {
      state = is_fuse(file, device) && enter(each.ring, file) ? kOurs : kForeign;
      each.state.store(state, std::memory_order_release);
    }
    return state == kOurs ? i : state == kAsking ? kLater : kNone;
  }
  return kNone;  // more than so many are none of ours
}

MountRing* Mounts::ring(uint32_t mount) {
  if (mount >= devices_.size()) return nullptr;
  Device& device = devices_[mount];
  return device.state.load(std::memory_order_acquire) == kOurs && !device.ring.is_gone() ? &device.ring
                                                                                         : nullptr;
}

void Mounts::abandon() {
  for (Device& each : devices_) {
    each.ring.abandon();
    each.state = kUnknown;
    each.number = 0;
  }
}

}  // namespace pnfsrdma::preload
