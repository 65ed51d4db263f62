// SPDX-License-Identifier: Apache-2.0
#include "shared/rdma/verbs/endpoint.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>

namespace pnfsrdma::rdma::verbs {
namespace {

// Work requests beyond the caller's: one operation longer than a message or with many slices takes several.
constexpr uint32_t kSpareWorkRequests = 64;
// Asked for in this order until the device agrees; a work request that small needs no second memory access.
constexpr uint32_t kInlineBytes[] = {256, 64, 0};

Result<uint32_t> largest_message(rdma_cm_id* identifier) {
  ibv_port_attr port{};
  const uint8_t number = identifier->port_num == 0 ? 1 : identifier->port_num;
  if (const int code = ibv_query_port(identifier->verbs, number, &port); code != 0) {
    return fail(code, "querying the port");
  }
  return port.max_msg_sz == 0 ? 1u << 30 : port.max_msg_sz;
}

}  // namespace

Result<std::unique_ptr<Endpoint>> Endpoint::make(std::shared_ptr<VerbsDomain> domain, ConnectionEvents events,
                                                 Identifier identifier, const QueuePairLimits& limits,
                                                 AsyncEventTarget* target) {
  std::unique_ptr<Endpoint> endpoint(
      new Endpoint(std::move(domain), std::move(events), std::move(identifier)));
  TRY_ASSIGN(endpoint->message_bytes_, largest_message(endpoint->identifier()));
  TRY(endpoint->make_completion_queue(limits, target));
  TRY(endpoint->make_queue_pair(limits, target));
  TRY(endpoint->modify_to_init());
  return endpoint;
}

Result<> Endpoint::make_completion_queue(const QueuePairLimits& limits, AsyncEventTarget* target) {
  ibv_context* context = domain_->device()->context();
  channel_.reset(ibv_create_comp_channel(context));
  if (!channel_) return std::unexpected(Error::from_errno("making a completion channel"));
  const int flags = ::fcntl(channel_->fd, F_GETFL);
  if (flags < 0 || ::fcntl(channel_->fd, F_SETFL, flags | O_NONBLOCK) != 0) {
    return std::unexpected(Error::from_errno("making the completion channel non-blocking"));
  }
  const uint32_t wanted = limits.send_depth + kSpareWorkRequests + limits.receive_depth;
  if (wanted > domain_->device()->limits().completions_max) {
    return fail(EINVAL, domain_->device()->name() + " has no completion queues that deep");
  }
  completions_.reset(ibv_create_cq(context, static_cast<int>(wanted), target, channel_.get(), 0));
  if (!completions_) return std::unexpected(Error::from_errno("making a completion queue"));
  return {};
}

// What ibv_post_send() does not have and the queue pair is made for.
uint64_t Endpoint::extended_operations() const {
  uint64_t operations = 0;
#ifdef PNFSRDMA_VERBS_HAVE_FLUSH
  if (can_flush_) operations |= IBV_QP_EX_WITH_FLUSH;
#endif
#ifdef PNFSRDMA_VERBS_HAVE_ATOMIC_WRITE
  if (can_write_atomically_) operations |= IBV_QP_EX_WITH_ATOMIC_WRITE;
#endif
  return operations;
}

Result<> Endpoint::make_queue_pair(const QueuePairLimits& limits, AsyncEventTarget* target) {
  const DeviceLimits& device = domain_->device()->limits();
  if (std::max(limits.send_depth, limits.receive_depth) > device.work_requests_max) {
    return fail(EINVAL, domain_->device()->name() + " has no queues that deep");
  }
  can_flush_ = device.native_flush && limits.native_flush;
  can_write_atomically_ = device.atomic_write && limits.atomic_write;
  TRY_ASSIGN(ibv_pd * pd, domain_->handle());
  int reason = 0;
  for (const uint32_t inline_bytes : kInlineBytes) {
    ibv_qp_init_attr_ex attributes{};
    attributes.qp_context = target;
    attributes.send_cq = attributes.recv_cq = completions_.get();
    attributes.cap.max_send_wr = std::min(limits.send_depth + kSpareWorkRequests, device.work_requests_max);
    attributes.cap.max_recv_wr = limits.receive_depth;
    attributes.cap.max_send_sge = std::min<uint32_t>(kGatherMax, device.slices_max);
    attributes.cap.max_recv_sge = 1;
    attributes.cap.max_inline_data = inline_bytes;
    attributes.qp_type = IBV_QPT_RC;
    attributes.pd = pd;
    attributes.comp_mask = IBV_QP_INIT_ATTR_PD;
    if (const uint64_t extended = extended_operations(); extended != 0) {
      attributes.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
      attributes.send_ops_flags =
          IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_SEND | extended;
    }
    queue_pair_.reset(ibv_create_qp_ex(domain_->device()->context(), &attributes));
    if (queue_pair_) {
      work_requests_ = std::min(attributes.cap.max_send_wr, limits.send_depth + kSpareWorkRequests);
      slices_ = std::max(attributes.cap.max_send_sge, 1u);
      inline_bytes_ = attributes.cap.max_inline_data;
      return {};
    }
    reason = errno;
    if (reason != EINVAL && reason != ENOMEM) break;
  }
  return fail(reason, "making a queue pair on " + domain_->device()->name() +
                          " (its queue pairs or the locked memory are used up, see RLIMIT_MEMLOCK)");
}

Result<> Endpoint::modify_to_init() {
  return modify(IBV_QPS_INIT, "INIT", 0, 0, {});
}

Result<> Endpoint::modify_to_ready(uint8_t read_depth_in, uint8_t read_depth_out, const RetryOptions& retry) {
  if (domain_->device()->limits().iwarp) return {};
  TRY(modify(IBV_QPS_RTR, "RTR", read_depth_in, read_depth_out, retry));
  return modify(IBV_QPS_RTS, "RTS", read_depth_in, read_depth_out, retry);
}

Result<> Endpoint::modify(ibv_qp_state state, const char* what, uint8_t read_depth_in, uint8_t read_depth_out,
                          const RetryOptions& retry) {
  ibv_qp_attr attributes{};
  int mask = 0;
  attributes.qp_state = state;
  if (rdma_init_qp_attr(identifier_.get(), &attributes, &mask) != 0) {
    return std::unexpected(Error::from_errno(std::string("asking how to get to ") + what));
  }
  // Bits above are the kernel's own and mean other things to the device's library.
  mask &= (IBV_QP_DEST_QPN << 1) - 1;
  if (state == IBV_QPS_INIT) {
    attributes.qp_access_flags = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
#ifdef PNFSRDMA_VERBS_HAVE_FLUSH
    if (can_flush_) attributes.qp_access_flags |= IBV_ACCESS_FLUSH_GLOBAL | IBV_ACCESS_FLUSH_PERSISTENT;
#endif
  } else if (state == IBV_QPS_RTR) {
    attributes.max_dest_rd_atomic = read_depth_in;
    attributes.min_rnr_timer = retry.rnr_timer;
  } else {
    attributes.max_rd_atomic = read_depth_out;
    attributes.timeout = retry.timeout_exponent;
    attributes.retry_cnt = retry.retries;
    attributes.rnr_retry = retry.rnr_retries;
  }
  const int code = ibv_modify_qp(queue_pair_.get(), &attributes, mask);
  if (code == 0) return {};
  return fail(code, std::string("moving the queue pair to ") + what);
}

void Endpoint::modify_to_error() {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_ERR;
  // The device may have gone, or the queue pair be there already: nothing to be done about it.
  static_cast<void>(ibv_modify_qp(queue_pair_.get(), &attributes, IBV_QP_STATE));
}

}  // namespace pnfsrdma::rdma::verbs
