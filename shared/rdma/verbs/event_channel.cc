// SPDX-License-Identifier: Apache-2.0
#include "shared/rdma/verbs/event_channel.h"

#include <fcntl.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>

#include "shared/base/sync.h"

namespace pnfsrdma::rdma::verbs {

int milliseconds_until(SteadyTime deadline) {
  const auto left = deadline - steady_now();
  const auto whole =
      std::chrono::ceil<Milliseconds>(std::min<SteadyTime::duration>(left, std::chrono::hours(1)));
  return static_cast<int>(std::max<Milliseconds::rep>(whole.count(), 1));
}

Result<ConnectionEvents> ConnectionEvents::make() {
  EventChannel channel(rdma_create_event_channel());
  if (!channel) return std::unexpected(Error::from_errno("opening /dev/infiniband/rdma_cm"));
  const int flags = ::fcntl(channel->fd, F_GETFL);
  if (flags < 0 || ::fcntl(channel->fd, F_SETFL, flags | O_NONBLOCK) != 0) {
    return std::unexpected(Error::from_errno("making the event channel non-blocking"));
  }
  return ConnectionEvents(std::move(channel));
}

std::optional<ConnectionEvent> ConnectionEvents::take() {
  rdma_cm_event* raw = nullptr;
  if (rdma_get_cm_event(channel_.get(), &raw) != 0) return std::nullopt;
  ConnectionEvent event;
  event.type = raw->event;
  event.status = raw->status;
  event.identifier = raw->id;
  const rdma_conn_param& said = raw->param.conn;
  const auto* bytes = static_cast<const std::byte*>(said.private_data);
  if (bytes != nullptr) event.private_data.assign(bytes, bytes + said.private_data_len);
  event.responder_resources = said.responder_resources;
  event.initiator_depth = said.initiator_depth;
  event.rnr_retry_count = said.rnr_retry_count;
  rdma_ack_cm_event(raw);
  return event;
}

Result<ConnectionEvent> ConnectionEvents::wait(SteadyTime deadline) {
  for (;;) {
    if (auto event = take()) return *std::move(event);
    if (steady_now() >= deadline) return fail(ETIMEDOUT, "no answer");
    pollfd entry{fd(), POLLIN, 0};
    if (::poll(&entry, 1, milliseconds_until(deadline)) < 0 && errno != EINTR) {
      return std::unexpected(Error::from_errno("waiting for the connection manager"));
    }
  }
}

}  // namespace pnfsrdma::rdma::verbs
