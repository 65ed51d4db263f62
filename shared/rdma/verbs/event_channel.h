// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "shared/base/bytes.h"
#include "shared/base/clock.h"
#include "shared/base/result.h"
#include "shared/rdma/verbs/handles.h"

namespace pnfsrdma::rdma::verbs {

// One event of the connection manager, copied out of librdmacm and acknowledged: a value.
struct ConnectionEvent {
  rdma_cm_event_type type = RDMA_CM_EVENT_ADDR_ERROR;
  int status = 0;
  rdma_cm_id* identifier = nullptr;  // a new one for CONNECT_REQUEST: the receiver owns it
  Bytes private_data;                // padded with zeros by IB and RoCE
  uint8_t responder_resources = 0;   // READs the peer wants to have in flight towards us
  uint8_t initiator_depth = 0;       // READs the peer lets us have in flight
  uint8_t rnr_retry_count = 0;       // what the peer asks of our sends
};

// An event channel of the connection manager that never blocks. Belongs to one thread.
class ConnectionEvents {
 public:
  static Result<ConnectionEvents> make();

  rdma_event_channel* get() const { return channel_.get(); }
  int fd() const { return channel_->fd; }
  // The next event, if one is there.
  std::optional<ConnectionEvent> take();
  // Waits for it. ETIMEDOUT; EINTR is not seen.
  Result<ConnectionEvent> wait(SteadyTime deadline);

 private:
  explicit ConnectionEvents(EventChannel channel) : channel_(std::move(channel)) {}
  EventChannel channel_;
};

// Until `deadline` in whole milliseconds, for calls that take such; at least 1.
int milliseconds_until(SteadyTime deadline);

}  // namespace pnfsrdma::rdma::verbs
