// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "shared/base/sync.h"
#include "shared/initiator/brick/device.h"

namespace pnfsrdma::initiator {

// The devices of a mount by id. They are made when a layout first names them and stay. Thread-safe.
class DeviceTable {
 public:
  explicit DeviceTable(Fabric& fabric) : fabric_(fabric) {}

  Device& find_or_make(const DeviceId& id) {
    std::lock_guard lock(mutex_);
    auto& device = devices_[id];
    if (!device) device = std::make_unique<Device>(id, fabric_);
    return *device;
  }
  std::vector<Device*> all() const {
    std::lock_guard lock(mutex_);
    std::vector<Device*> devices;
    for (const auto& [id, device] : devices_) devices.push_back(device.get());
    return devices;
  }

 private:
  Fabric& fabric_;
  mutable Mutex mutex_;
  std::map<DeviceId, std::unique_ptr<Device>> devices_;
};

}  // namespace pnfsrdma::initiator
