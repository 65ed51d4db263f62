// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <vector>

#include "shared/base/clock.h"
#include "shared/base/deferred_destruction.h"
#include "shared/base/result.h"
#include "shared/initiator/brick/buffer.h"
#include "shared/initiator/brick/completion_poller.h"
#include "shared/initiator/brick/event_poller.h"
#include "shared/initiator/brick/flush_chain.h"
#include "shared/initiator/data_path_options.h"
#include "shared/initiator/statistics.h"
#include "shared/nfs4/basic_types.h"
#include "shared/nfs4/pmem_layout.h"

namespace pnfsrdma::initiator {

// What all devices of a mount share. Lives longer than they do. Thread-safe as each part is.
struct Fabric {
  const Clock& clock;
  const DataPathOptions options;
  const std::vector<TransportDomain> transports;
  // GETDEVICEINFO: paths, ticket and durability of a device. Waits for the MDS.
  const std::function<Result<nfs4::DeviceAddress>(const nfs4::DeviceId&)> address_of;
  // Where connections end: no worker waits for a device to give one up.
  DeferredDestruction& destruction;
  Statistics statistics{};
  // For durable writes that go out together.
  FlushChainPool flush_chains{};
  // For I/O that nobody waits for.
  CompletionPoller completions{clock};
  // For what bricks tell unasked.
  EventPoller events{clock, options.io_timeout};
  // The mount ends: nothing waits any more.
  std::atomic<bool> aborted = false;

  SteadyTime now() const { return clock.now(); }
  SteadyTime io_deadline() const { return now() + options.io_timeout; }
};

}  // namespace pnfsrdma::initiator
