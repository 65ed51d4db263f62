// SPDX-License-Identifier: Apache-2.0
#include "shared/rdma/verbs/queue_pair.h"

#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>

#include "shared/base/log.h"
#include "shared/base/sync.h"
#include "shared/rdma/verbs/address.h"

namespace pnfsrdma::rdma::verbs {
namespace {

unsigned usable_processors() {
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof(set), &set) != 0) return 1;
  return static_cast<unsigned>(CPU_COUNT(&set));
}

const char* reason_of(ibv_event_type type) {
  switch (type) {
    case IBV_EVENT_QP_ACCESS_ERR:
      return "the peer accessed memory without permission";
    case IBV_EVENT_QP_REQ_ERR:
      return "the peer sent a malformed request";
    case IBV_EVENT_DEVICE_FATAL:
      return "the device is broken";
    case IBV_EVENT_CQ_ERR:
      return "the completion queue has an error";
    default:
      return "the device gave up the queue pair";
  }
}

}  // namespace

VerbsQueuePair::VerbsQueuePair(const QueuePairLimits& limits)
    : limits_(limits), completed_(limits), spin_budget_(usable_processors()) {}

Result<std::unique_ptr<VerbsQueuePair>> VerbsQueuePair::make(std::shared_ptr<VerbsDomain> domain,
                                                             ConnectionEvents events, Identifier identifier,
                                                             const QueuePairLimits& limits) {
  std::unique_ptr<VerbsQueuePair> queue_pair(new VerbsQueuePair(limits));
  TRY(queue_pair->open(std::move(domain), std::move(events), std::move(identifier)));
  return queue_pair;
}

Result<> VerbsQueuePair::open(std::shared_ptr<VerbsDomain> domain, ConnectionEvents events,
                              Identifier identifier) {
  auto peer = Address::from(rdma_get_peer_addr(identifier.get()));
  peer_ = peer ? peer->to_string() : "?";
  wake_ = FileDescriptor(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake_) return std::unexpected(Error::from_errno("eventfd"));
  epoll_ = FileDescriptor(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll_) return std::unexpected(Error::from_errno("epoll_create1"));
  TRY_ASSIGN(endpoint_,
             Endpoint::make(std::move(domain), std::move(events), std::move(identifier), limits_, this));
  sends_ = std::make_unique<SendQueue>(*endpoint_, limits_, counters_);
  receives_ = std::make_unique<ReceiveQueue>(*endpoint_, limits_, counters_);
  // From here on the destructor ends a whole queue pair, whatever fails.
  for (const int fd : {wake_.get(), endpoint_->channel()->fd, endpoint_->events().fd()}) {
    epoll_event event{};
    event.events = EPOLLIN;
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
      return std::unexpected(Error::from_errno("epoll_ctl"));
    }
  }
  endpoint_->domain().add_queue_pair(this);
  endpoint_->domain().device()->events().add(this);
  return {};
}

VerbsQueuePair::~VerbsQueuePair() {
  if (!endpoint_) return;
  endpoint_->domain().device()->events().remove(this);
  endpoint_->domain().remove_queue_pair(this);
  fail();
  if (unacknowledged_ > 0) ibv_ack_cq_events(endpoint_->completions(), unacknowledged_);
}

void VerbsQueuePair::established(uint32_t read_depth, const PrivateData& reply) {
  limits_.read_depth = read_depth;
  limits_.native_flush = reply.native_flush && endpoint_->can_flush();
  limits_.atomic_write = reply.atomic_write && endpoint_->can_write_atomically();
}

void VerbsQueuePair::answer_later(Bytes private_data, uint8_t read_depth_in, uint8_t read_depth_out) {
  limits_.read_depth = read_depth_out;
  answer_ = std::make_unique<Answer>(Answer{std::move(private_data), read_depth_in, read_depth_out});
  answer_due_ = true;
  wake();
}

void VerbsQueuePair::answer() {
  if (!answer_due_.load(std::memory_order_acquire)) return;
  std::unique_lock lock(answer_mutex_);
  if (!answer_) return;
  const std::unique_ptr<Answer> answer = std::move(answer_);
  answer_due_ = false;
  rdma_conn_param parameters{};
  parameters.private_data = answer->private_data.data();
  parameters.private_data_len = static_cast<uint8_t>(answer->private_data.size());
  parameters.responder_resources = answer->read_depth_in;
  parameters.initiator_depth = answer->read_depth_out;
  parameters.rnr_retry_count = RetryOptions().rnr_retries;
  parameters.qp_num = endpoint_->queue_pair()->qp_num;
  const bool sent = rdma_accept(endpoint_->identifier(), &parameters) == 0;
  lock.unlock();
  if (!sent) end("the peer has gone before it was answered");
}

Result<> VerbsQueuePair::check_ready() const {
  if (state_.load(std::memory_order_acquire) == State::kReady) return {};
  return pnfsrdma::fail(ENOTCONN, "the connection to " + peer_ + " has ended");
}

Result<> VerbsQueuePair::post_write(uint64_t work_id, std::span<const LocalSlice> source,
                                    RemoteSlice target) {
  std::lock_guard lock(post_mutex_);
  TRY(check_ready());
  return sends_->add_write(work_id, source, target);
}

Result<> VerbsQueuePair::post_read(uint64_t work_id, LocalSlice sink, RemoteSlice source) {
  std::lock_guard lock(post_mutex_);
  TRY(check_ready());
  return sends_->add_read(work_id, sink, source);
}

Result<> VerbsQueuePair::post_send(uint64_t work_id, std::span<const LocalSlice> message) {
  return add_send(work_id, message, Signal::kWithTheBatch);
}

Result<> VerbsQueuePair::post_send_lazily(uint64_t work_id, std::span<const LocalSlice> message) {
  return add_send(work_id, message, Signal::kWithALaterOne);
}

Result<> VerbsQueuePair::add_send(uint64_t work_id, std::span<const LocalSlice> message, Signal signal) {
  uint64_t length = 0;
  for (const LocalSlice& slice : message) length += slice.length;
  std::lock_guard lock(post_mutex_);
  TRY(check_ready());
  if (length > std::min(limits_.message_size_max, endpoint_->message_bytes())) {
    return pnfsrdma::fail(EMSGSIZE, "a message of " + std::to_string(length) + " bytes");
  }
  return sends_->add_send(work_id, message, signal);
}

Result<> VerbsQueuePair::post_receive(uint64_t work_id, LocalSlice buffer) {
  std::lock_guard lock(post_mutex_);
  TRY(check_ready());
  return receives_->post(work_id, buffer);
}

Result<> VerbsQueuePair::post_flush(uint64_t work_id, RemoteSlice target, FlushLevel level) {
  std::lock_guard lock(post_mutex_);
  TRY(check_ready());
  if (!limits_.native_flush) return pnfsrdma::fail(EOPNOTSUPP, "native flush was not agreed on");
  return sends_->add_flush(work_id, target, level);
}

Result<> VerbsQueuePair::post_atomic_write(uint64_t work_id, uint64_t value, RemoteSlice target) {
  std::lock_guard lock(post_mutex_);
  TRY(check_ready());
  if (!limits_.atomic_write) return pnfsrdma::fail(EOPNOTSUPP, "atomic write was not agreed on");
  return sends_->add_atomic_write(work_id, value, target);
}

void VerbsQueuePair::submit() {
  answer();
  bool posted;
  {
    std::lock_guard lock(post_mutex_);
    if (state_.load(std::memory_order_acquire) != State::kReady) return;
    posted = sends_->submit();
  }
  if (!posted) end("the device accepts no work requests");
}

// Readable at once: the first poll() arms it.
int VerbsQueuePair::fd() const {
  if (!watched_.exchange(true)) wake();
  return epoll_.get();
}

void VerbsQueuePair::wake() const {
  const uint64_t one = 1;
  static_cast<void>(!::write(wake_.get(), &one, sizeof(one)));
}

void VerbsQueuePair::end(const char* reason) {
  State ready = State::kReady;
  if (!state_.compare_exchange_strong(ready, State::kEnding)) return;
  ended_at_ = steady_now();
  if (reason != nullptr) log_info("verbs", "ended peer={} reason=\"{}\"", peer_, reason);
  endpoint_->modify_to_error();
  {
    std::lock_guard lock(answer_mutex_);
    // A peer that was never answered is refused; one that has gone already needs neither.
    if (answer_) {
      answer_.reset();
      answer_due_ = false;
      rdma_reject(endpoint_->identifier(), nullptr, 0);
    } else {
      rdma_disconnect(endpoint_->identifier());
    }
  }
  wake();
}

// The device hands back what was posted within microseconds; a caller that looks at connected() at once and
// polls no more sees the end then.
void VerbsQueuePair::fail() {
  end(nullptr);
  std::lock_guard lock(poll_mutex_);
  collect();
  try_close();
}

void VerbsQueuePair::async_event(ibv_event_type type) {
  switch (type) {
    case IBV_EVENT_COMM_EST:
      // Data came before the last step of the handshake: that step is as good as done.
      rdma_notify(endpoint_->identifier(), type);
      return;
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_CQ_ERR:
    case IBV_EVENT_DEVICE_FATAL:
      return end(reason_of(type));
    default:
      return;
  }
}

}  // namespace pnfsrdma::rdma::verbs
