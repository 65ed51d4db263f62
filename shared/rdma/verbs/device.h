// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "shared/base/result.h"
#include "shared/rdma/verbs/async_events.h"
#include "shared/rdma/verbs/handles.h"

namespace pnfsrdma::rdma::verbs {

// What a device can do, in the terms the transport uses.
struct DeviceLimits {
  uint32_t work_requests_max = 0;  // per send or receive queue
  uint32_t completions_max = 0;    // per completion queue
  uint32_t slices_max = 0;         // per work request
  uint32_t read_depth_max = 0;     // READs in flight, asked (ORD) and served (IRD)
  uint64_t region_size_max = 0;    // bytes
  bool native_flush = false;       // the device and the rdma-core this was built with have IBV_WR_FLUSH
  bool atomic_write = false;       // likewise IBV_WR_ATOMIC_WRITE
  bool iwarp = false;
};

// An RDMA device as librdmacm has opened it: connection manager and memory regions must share one context.
// Shared by everything made on it; the last one closes it. Thread-safe.
class Device {
 public:
  // Every device rdma_cm can use. ENODEV, with the reason, when there is none.
  static Result<std::vector<std::shared_ptr<Device>>> open_all();

  Device(std::shared_ptr<DeviceContexts> contexts, ibv_context* context, const DeviceLimits& limits);

  ibv_context* context() const { return context_; }
  // "mlx5_0"
  const std::string& name() const { return name_; }
  const DeviceLimits& limits() const { return limits_; }
  AsyncEvents& events() { return events_; }

 private:
  const std::shared_ptr<DeviceContexts> contexts_;
  ibv_context* const context_;
  const std::string name_;
  const DeviceLimits limits_;
  AsyncEvents events_;
};

}  // namespace pnfsrdma::rdma::verbs
