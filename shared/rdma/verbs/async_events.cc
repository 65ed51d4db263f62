// SPDX-License-Identifier: Apache-2.0
#include "shared/rdma/verbs/async_events.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>

#include <cerrno>

#include "shared/base/log.h"
#include "shared/base/sync.h"

namespace pnfsrdma::rdma::verbs {
namespace {

bool of_queue_pair(ibv_event_type type) {
  switch (type) {
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_PATH_MIG:
    case IBV_EVENT_PATH_MIG_ERR:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
      return true;
    default:
      return false;
  }
}

}  // namespace

AsyncEvents::AsyncEvents(ibv_context* context, std::string device)
    : context_(context), device_(std::move(device)), stop_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  // Two transports of one process share the context: whoever comes second must not block.
  ::fcntl(context_->async_fd, F_SETFL, ::fcntl(context_->async_fd, F_GETFL) | O_NONBLOCK);
  thread_ = Thread([this] { run(); });
  pthread_setname_np(thread_.native_handle(), "verbs-events");
}

AsyncEvents::~AsyncEvents() {
  const uint64_t one = 1;
  static_cast<void>(!::write(stop_.get(), &one, sizeof(one)));
  thread_.join();
}

void AsyncEvents::run() {
  for (;;) {
    pollfd entries[2] = {{context_->async_fd, POLLIN, 0}, {stop_.get(), POLLIN, 0}};
    if (::poll(entries, 2, -1) < 0 && errno != EINTR) return;
    if (entries[1].revents != 0) return;
    ibv_async_event event{};
    if (ibv_get_async_event(context_, &event) == 0) {
      handle(event);
      ibv_ack_async_event(&event);
    } else if ((entries[0].revents & (POLLERR | POLLHUP | POLLNVAL)) != 0 || errno == EIO) {
      log_error("verbs", "device-gone device={}", device_);
      return;
    }
  }
}

void AsyncEvents::handle(const ibv_async_event& event) {
  if (of_queue_pair(event.event_type)) {
    auto* target = static_cast<AsyncEventTarget*>(event.element.qp->qp_context);
    if (target != nullptr) target->async_event(event.event_type);
    return;
  }
  switch (event.event_type) {
    case IBV_EVENT_DEVICE_FATAL: {
      // Nothing posted on it completes any more.
      log_error("verbs", "device-broken device={} all its connections end", device_);
      auto all = targets_.lock();
      for (AsyncEventTarget* target : *all) target->async_event(event.event_type);
      return;
    }
    case IBV_EVENT_CQ_ERR: {
      log_error("verbs", "device-event device={} event=\"{}\"", device_,
                ibv_event_type_str(event.event_type));
      auto* target = static_cast<AsyncEventTarget*>(event.element.cq->cq_context);
      if (target != nullptr) target->async_event(event.event_type);
      return;
    }
    case IBV_EVENT_PORT_ERR:
      log_warning("verbs", "port-down device={} port={}", device_, event.element.port_num);
      return;
    default:
      log_info("verbs", "device-event device={} event=\"{}\"", device_, ibv_event_type_str(event.event_type));
  }
}

}  // namespace pnfsrdma::rdma::verbs
