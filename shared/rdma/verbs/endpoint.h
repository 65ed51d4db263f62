// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "shared/rdma/transport.h"
#include "shared/rdma/verbs/domain.h"
#include "shared/rdma/verbs/event_channel.h"
#include "shared/rdma/verbs/handles.h"

namespace pnfsrdma::rdma::verbs {

// How the reliable connection behaves when packets get lost or the peer has no receive posted.
struct RetryOptions {
  // Acknowledgement timeout as the wire has it: 4.096 us * 2^17 = 0.54 s. Seven repetitions: a link that is
  // down for longer than about four seconds ends the connection, which is then reestablished.
  uint8_t timeout_exponent = 17;
  uint8_t retries = 7;
  // Finite always: a peer that posts no receives must not stall us forever.
  uint8_t rnr_retries = 3;
  // What our receiver asks of the sender between two tries: 82 ms.
  uint8_t rnr_timer = 26;
};

// The C objects of one connection in creation order, and the transitions of its queue pair, which are done
// here and not by librdmacm: it would take the peer's word for the number of RNR retries (7 is forever).
// Not thread-safe, but modify_to_error() is.
class Endpoint {
 public:
  // Takes the identifier, bound to the domain's device, with its events. `target` hears asynchronous events.
  // The queue pair is in the INIT state, receives can be posted. Errors: ENOMEM and EINVAL name the limits.
  static Result<std::unique_ptr<Endpoint>> make(std::shared_ptr<VerbsDomain> domain, ConnectionEvents events,
                                                Identifier identifier, const QueuePairLimits& limits,
                                                AsyncEventTarget* target);

  // To RTR and RTS, when both sides' parameters are known. On iWARP the device does it.
  Result<> modify_to_ready(uint8_t read_depth_in, uint8_t read_depth_out, const RetryOptions& retry);
  void modify_to_error();

  ibv_qp* queue_pair() const { return queue_pair_.get(); }
  ibv_cq* completions() const { return completions_.get(); }
  ibv_comp_channel* channel() const { return channel_.get(); }
  rdma_cm_id* identifier() const { return identifier_.get(); }
  ConnectionEvents& events() { return events_; }
  VerbsDomain& domain() const { return *domain_; }

  // Of the queue pair as it was made.
  uint32_t work_requests() const { return work_requests_; }
  uint32_t slices() const { return slices_; }
  uint32_t inline_bytes() const { return inline_bytes_; }
  uint32_t message_bytes() const { return message_bytes_; }
  bool can_flush() const { return can_flush_; }
  bool can_write_atomically() const { return can_write_atomically_; }

 private:
  Endpoint(std::shared_ptr<VerbsDomain> domain, ConnectionEvents events, Identifier identifier)
      : domain_(std::move(domain)), events_(std::move(events)), identifier_(std::move(identifier)) {}
  Result<> make_completion_queue(const QueuePairLimits& limits, AsyncEventTarget* target);
  Result<> make_queue_pair(const QueuePairLimits& limits, AsyncEventTarget* target);
  uint64_t extended_operations() const;
  Result<> modify_to_init();
  Result<> modify(ibv_qp_state state, const char* what, uint8_t read_depth_in, uint8_t read_depth_out,
                  const RetryOptions& retry);

  const std::shared_ptr<VerbsDomain> domain_;
  ConnectionEvents events_;
  Identifier identifier_;
  CompletionChannel channel_;
  CompletionQueueHandle completions_;
  QueuePairHandle queue_pair_;
  uint32_t work_requests_ = 0;
  uint32_t slices_ = 0;
  uint32_t inline_bytes_ = 0;
  uint32_t message_bytes_ = 0;
  bool can_flush_ = false;
  bool can_write_atomically_ = false;
};

}  // namespace pnfsrdma::rdma::verbs
