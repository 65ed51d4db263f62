// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "server/brickd/config.h"
#include "shared/base/random.h"
#include "shared/base/result.h"
#include "shared/pmem/mapping.h"

namespace pnfsrdma::brick {

// pnfsrdma-brickd --format: makes and preallocates the file if there is none, writes superblock and table,
// tells what it does on stdout. A pool or any other file with content that is there already is refused
// (EEXIST) unless `force`.
Result<> format_pool(const Config& config, bool force, Random& random);

// Makes the file for it if there is none, of `size` ("4G"), preallocated and zero; one with content is refused (EEXIST)
// unless `force`. True: it was made so. False: it is a device.
Result<bool> prepare_file(const std::string& path, const std::string& size, bool force);

// How the configuration wants a plain file flushed.
pmem::FileFlush file_flush_of(const Config& config);

}  // namespace pnfsrdma::brick
