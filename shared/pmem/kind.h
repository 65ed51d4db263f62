// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "shared/base/result.h"

namespace pnfsrdma::pmem {

// What lies behind a mapping.
enum class Kind : uint8_t {
  kMemory,     // anonymous memory of this process
  kTmpfs,      // tmpfs, ramfs, hugetlbfs: memory with a name
  kFile,       // a page-cached file on a block device
  kFsDax,      // a file whose pages are the medium itself
  kDeviceDax,  // a character device over the medium
};
std::string_view to_string(Kind kind);

struct Medium {
  Kind kind = Kind::kMemory;
  // The medium keeps its content without power. False for DRAM behind any of the names above: such a brick
  // never claims power durability.
  bool persistent = false;
  // Why it is not persistent, for people (doubt.h).
  std::string doubt;
};

// Looks at an open file or device. EINVAL when it is neither a regular file nor device DAX.
Result<Medium> detect_medium(int fd);

}  // namespace pnfsrdma::pmem
