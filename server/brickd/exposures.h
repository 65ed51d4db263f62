// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "shared/base/bytes.h"
#include "shared/base/guarded.h"
#include "shared/brick/session_messages.h"
#include "shared/rdma/region.h"

namespace pnfsrdma::brick {

using Regions = std::vector<std::unique_ptr<rdma::Region>>;

// The grants of one connection as they are registered in its protection domain: filled by the control loop,
// emptied by that and the reaper, looked up by the connection's data thread. Thread-safe. Regions are
// destroyed by whoever takes them out, never under the lock: that can wait for a flush.
class Exposures {
 public:
  void add(uint64_t grant, std::unique_ptr<rdma::Region> region);
  // Null when it is not there.
  std::unique_ptr<rdma::Region> take(uint64_t grant);
  Regions take_all();
  size_t size();

  std::optional<rdma::RemoteSlice> handle(uint64_t grant);
  std::optional<MutableByteSpan> memory(uint64_t grant);
  std::vector<HelloGrant> all();

 private:
  Guarded<std::map<uint64_t, std::unique_ptr<rdma::Region>>> regions_;
};

}  // namespace pnfsrdma::brick
