// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "tests/crash/images/journal.h"
#include "tests/crash/images/metadata.h"
#include "tests/crash/images/pool_image.h"

namespace pnfsrdma::crash {

// What a power cut leaves: both media, and what the client outside had been told by then.
struct Remains {
  PoolImage pool;
  std::shared_ptr<Metadata> metadata;
  Journal journal;
  uint32_t boots = 0;  // of the hosts, so far
};

}  // namespace pnfsrdma::crash
