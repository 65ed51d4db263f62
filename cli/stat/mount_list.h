// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace pnfsrdma::cli {

// A pnfsrdma mount as the kernel lists it.
struct Mounted {
  std::string source;  // "127.0.0.1:/[iwarp+process]"
  std::string path;    // where it is mounted
  bool operator==(const Mounted&) const = default;
};

// The mounts of pnfsrdma-fuse in the text of /proc/self/mountinfo (proc(5)), in its order.
std::vector<Mounted> mounts_in(std::string_view mountinfo);

// The mount that holds an absolute path without symbolic links; null: none does.
const Mounted* mount_of(const std::vector<Mounted>& mounts, std::string_view path);

}  // namespace pnfsrdma::cli
