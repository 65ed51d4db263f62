// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "shared/base/bytes.h"
#include "shared/base/guarded.h"
#include "shared/base/sync.h"
#include "shared/brick/session_messages.h"
#include "shared/rdma/region.h"

namespace pnfsrdma::brick {

using Regions = std::vector<std::unique_ptr<rdma::Region>>;

// The grants of one connection as they are registered in its protection domain: filled by the control loop,
// emptied by that and the reaper, looked up by the connection's data thread. Thread-safe. Regions are
// destroyed by whoever takes them out, never under the lock: that can wait for a flush, and for a Use.
class Exposures {
 public:
  void add(uint64_t grant, std::unique_ptr<rdma::Region> region, bool writable);
  // Null when it is not there.
  std::unique_ptr<rdma::Region> take(uint64_t grant);
  Regions take_all();
  size_t size();

  std::optional<rdma::RemoteSlice> handle(uint64_t grant);
  std::optional<MutableByteSpan> memory(uint64_t grant);
  std::vector<HelloGrant> all();

  // The brick's own access in the client's name: while it lasts the region's destructor waits, as for one by RDMA. So
  // it must be short, and wait for nobody. One at a time for each grant.
  class Use {
   public:
    MutableByteSpan memory;
    bool writable = false;

   private:
    friend class Exposures;
    std::shared_ptr<Mutex> mutex_;
    std::unique_lock<Mutex> lock_;
  };
  std::optional<Use> use(uint64_t grant);

 private:
  class UsedRegion;
  struct Exposed {
    std::unique_ptr<rdma::Region> region;
    std::shared_ptr<Mutex> used;
    bool writable = false;
  };
  Guarded<std::map<uint64_t, Exposed>> regions_;
};

}  // namespace pnfsrdma::brick
