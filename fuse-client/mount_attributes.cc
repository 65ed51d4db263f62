// SPDX-License-Identifier: Apache-2.0
#include "fuse-client/mount_attributes.h"

#include <algorithm>
#include <array>

namespace pnfsrdma::fuse_client {
namespace {

struct Attribute {
  std::string_view name;
  std::string (MountStatus::*text)() const;
  bool listed;  // getfattr -d shows it
};

constexpr std::array kAttributes = {
    Attribute{"pnfsrdma.transport", &MountStatus::transport, true},
    Attribute{"pnfsrdma.durability", &MountStatus::durability, true},
    Attribute{"pnfsrdma.statistics", &MountStatus::statistics_json, true},
    Attribute{"pnfsrdma.status", &MountStatus::status_json, false},
    Attribute{"pnfsrdma.metrics", &MountStatus::metrics_text, false},
};

// The same under "system.": for "user." attributes the kernel first looks whether the caller may read the
// root, and asks for its attributes when it has none it may still believe: a call to the MDS, for a look at
// the counters. Of "system." attributes it leaves the permission to the file system.
constexpr std::string_view kUserPrefix = "user.";
constexpr std::string_view kSystemPrefix = "system.";

std::string_view without_prefix(std::string_view name) {
  for (const std::string_view prefix : {kUserPrefix, kSystemPrefix}) {
    if (name.starts_with(prefix)) return name.substr(prefix.size());
  }
  return {};
}

const Attribute* find(std::string_view name) {
  const std::string_view wanted = without_prefix(name);
  const auto* found = std::ranges::find(kAttributes, wanted, &Attribute::name);
  return found == kAttributes.end() ? nullptr : found;
}

}  // namespace

std::optional<std::string> mount_attribute(const MountStatus& status, std::string_view name) {
  const Attribute* const found = find(name);
  if (found == nullptr) return std::nullopt;
  return (status.*found->text)();
}

std::vector<std::string> listed_mount_attributes() {
  std::vector<std::string> names;
  for (const Attribute& attribute : kAttributes) {
    if (attribute.listed) names.push_back(std::string(kUserPrefix).append(attribute.name));
  }
  return names;
}

}  // namespace pnfsrdma::fuse_client
