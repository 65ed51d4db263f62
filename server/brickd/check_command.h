// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "server/brickd/format.h"
#include "shared/base/bytes.h"
#include "shared/base/result.h"

namespace pnfsrdma::brick {

struct Config;

// What a look at a whole pool finds. Notes are harmless (an update cut short by a crash); problems are not.
struct CheckReport {
  uint64_t clean = 0, dirty = 0, allocated = 0, parked = 0;
  std::vector<std::string> notes;
  std::vector<std::string> problems;
};

// Reads superblock, table and every clean block (which must be zero); changes nothing. Errors as
// Superblock::open's.
Result<CheckReport> check_pool(MutableByteSpan pool);

// pnfsrdma-brickd --check: prints the report. Exit status: 0 sound, 1 problems, 2 the pool cannot be opened.
int run_check(const Config& config);

}  // namespace pnfsrdma::brick
