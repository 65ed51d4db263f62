// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

namespace pnfsrdma::pmem {

// What the kernel tells of devices under /sys (Documentation/ABI). A value; tests give it a tree of their
// own.
class Sysfs {
 public:
  explicit Sysfs(std::string root = "/sys") : root_(std::move(root)) {}

  // Where the device sits, e.g. "/sys/devices/…/ndbus0/region0/dax0.0/dax/dax0.0"; empty when it does not.
  std::string character_device(dev_t device) const { return place("char", device); }
  std::string block_device(dev_t device) const { return place("block", device); }

  // The first line of an attribute; none when it is not there or not readable.
  static std::optional<std::string> attribute(const std::string& path);

 private:
  std::string place(const char* type, dev_t device) const;

  std::string root_;
};

}  // namespace pnfsrdma::pmem
