// SPDX-License-Identifier: Apache-2.0
// The polling side of VerbsQueuePair.
#include <poll.h>
#include <sched.h>

#include <array>
#include <cerrno>

#include "shared/base/log.h"
#include "shared/base/sync.h"
#include "shared/rdma/verbs/queue_pair.h"

namespace pnfsrdma::rdma::verbs {
namespace {

constexpr int kCompletionsPerLook = 32;
// How long the device may take to hand back what was posted on a queue pair in the error state.
constexpr Milliseconds kFlushTime{2000};
// Between two looks while that lasts.
constexpr Milliseconds kFlushPause{1};
constexpr unsigned kAcknowledgeEvery = 1024;
// A look is a system call, some tens of nanoseconds a poll are not.
constexpr unsigned kEmptyPollsPerLook = 1024;
// A device of silicon answers within this. Threads of a device of software (rxe, siw) may be waiting for the
// very processor that spins: it is theirs from then on.
constexpr std::chrono::microseconds kUnshared{10};

SteadyTime now() {
  return steady_now();
}

timespec left_until(SteadyTime deadline) {
  const auto left =
      std::clamp<SteadyTime::duration>(deadline - now(), SteadyTime::duration(0), std::chrono::hours(1));
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(left);
  const auto rest = std::chrono::duration_cast<std::chrono::nanoseconds>(left - seconds);
  return {seconds.count(), rest.count()};
}

}  // namespace

// Takes what the device has completed.
void VerbsQueuePair::collect() {
  std::array<ibv_wc, kCompletionsPerLook> found;
  const char* reason = nullptr;
  for (;;) {
    const int count = ibv_poll_cq(endpoint_->completions(), kCompletionsPerLook, found.data());
    for (int i = 0; i < count; ++i) {
      const ibv_wc& completion = found[i];
      if ((completion.wr_id & ReceiveQueue::kMark) != 0) {
        const bool success = completion.status == IBV_WC_SUCCESS;
        receives_->retire(completion.wr_id & ~ReceiveQueue::kMark, completion.status,
                          success ? completion.byte_len : 0, completed_);
        // Nobody of ours does that: a peer that takes keys back is not one of ours.
        if (success && (completion.wc_flags & IBV_WC_WITH_INV) != 0) reason = "the peer invalidated a key";
      } else {
        sends_->retire(completion.wr_id, completion.status, completed_);
      }
      if (completion.status != IBV_WC_SUCCESS && reason == nullptr)
        reason = ibv_wc_status_str(completion.status);
    }
    if (count < 0) reason = "the completion queue cannot be read";
    if (count < kCompletionsPerLook) break;
  }
  if (reason != nullptr) end(reason);
}

void VerbsQueuePair::take_connection_event(const ConnectionEvent& event) {
  switch (event.type) {
    case RDMA_CM_EVENT_DEVICE_REMOVAL:
      device_removed_ = true;
      log_error("verbs", "device-removed peer={}", peer_);
      return end("the RDMA device was removed");
    case RDMA_CM_EVENT_DISCONNECTED:
      return end("the peer disconnected");
    case RDMA_CM_EVENT_CONNECT_ERROR:
    case RDMA_CM_EVENT_UNREACHABLE:
    case RDMA_CM_EVENT_REJECTED:
      return end(rdma_event_str(event.type));
    default:
      return;  // ESTABLISHED, TIMEWAIT_EXIT, ADDR_CHANGE: nothing to do
  }
}

void VerbsQueuePair::look_at_events() {
  while (auto event = endpoint_->events().take()) take_connection_event(*event);
}

// kEnding becomes kClosed when everything has been handed back.
void VerbsQueuePair::try_close() {
  if (state_.load(std::memory_order_acquire) != State::kEnding) return;
  std::lock_guard lock(post_mutex_);
  const bool handed_back = sends_->all_retired() && receives_->all_retired();
  if (!handed_back && !device_removed_ && now() < ended_at_.load() + kFlushTime) return;
  sends_->flush_all(completed_);
  receives_->flush_all(completed_);
  state_.store(State::kClosed, std::memory_order_release);
  wake();  // for good: fd() stays readable
}

size_t VerbsQueuePair::deliver(std::span<Completion> completions) {
  const size_t sends = completed_.sends(), receives = completed_.receives();
  const size_t count = completed_.take(completions);
  if (sends != completed_.sends()) sends_->delivered(sends - completed_.sends());
  if (receives != completed_.receives()) receives_->delivered(receives - completed_.receives());
  return count;
}

// Asks for an event with the next completion. False when it was asked for already.
bool VerbsQueuePair::arm() {
  if (armed_) return false;
  armed_ = ibv_req_notify_cq(endpoint_->completions(), 0) == 0;
  return true;
}

// Takes the event that arm() asked for, if it has come. There is one at most: looking for another would cost
// every sleep a system call.
void VerbsQueuePair::disarm() {
  ibv_cq* queue = nullptr;
  void* unused = nullptr;
  if (ibv_get_cq_event(endpoint_->channel(), &queue, &unused) != 0) return;
  armed_ = false;
  if (++unacknowledged_ < kAcknowledgeEvery) return;
  ibv_ack_cq_events(endpoint_->completions(), unacknowledged_);
  unacknowledged_ = 0;
}

bool VerbsQueuePair::something_to_deliver() {
  if (!completed_.empty() || state_.load(std::memory_order_relaxed) == State::kClosed) return true;
  collect();
  try_close();
  return !completed_.empty() || state_.load(std::memory_order_relaxed) == State::kClosed;
}

// Takes note of everything the three descriptors tell.
void VerbsQueuePair::look_at_all_fds() {
  pollfd entries[3] = {
      {endpoint_->channel()->fd, POLLIN, 0}, {endpoint_->events().fd(), POLLIN, 0}, {wake_.get(), POLLIN, 0}};
  if (::poll(entries, 3, 0) <= 0) return;
  uint64_t count;
  if (entries[0].revents != 0) disarm();
  if (entries[2].revents != 0) static_cast<void>(!::read(wake_.get(), &count, sizeof(count)));
  if (entries[1].revents != 0) look_at_events();
}

size_t VerbsQueuePair::poll(std::span<Completion> completions) {
  answer();
  if (sends_->has_unsubmitted()) submit();
  std::lock_guard lock(poll_mutex_);
  if (something_to_deliver()) return deliver(completions);
  // Arming costs system calls: only for who watches fd(). Others learn now and then that the peer has gone.
  if (!watched_.load(std::memory_order_relaxed)) {
    if (++empty_polls_ % kEmptyPollsPerLook != 0) return 0;
    look_at_all_fds();
    return something_to_deliver() ? deliver(completions) : 0;
  }
  look_at_all_fds();
  arm();
  if (something_to_deliver()) return deliver(completions);
  // Still ending: whoever watches fd() comes back until it is over.
  if (state_.load(std::memory_order_relaxed) == State::kEnding) wake();
  return 0;
}

// Looks again and again as long as that usually pays.
bool VerbsQueuePair::spin(SteadyTime start, SteadyTime deadline) {
  const SteadyTime until = std::min(deadline, start + spin_budget_.next());
  for (SteadyTime at = start; at < until; at = now()) {
    if (at > start + kUnshared) yield_thread();
    for (int i = 0; i < 16; ++i) {
      std::lock_guard lock(poll_mutex_);
      if (something_to_deliver()) return true;
    }
  }
  return false;
}

bool VerbsQueuePair::wait(SteadyTime deadline) {
  answer();
  const SteadyTime start = now();
  const bool spun = spin(start, deadline);
  bool found = spun;
  while (!found) {
    bool ending;
    {
      std::lock_guard lock(poll_mutex_);
      arm();
      if (something_to_deliver()) break;
      ending = state_.load(std::memory_order_relaxed) == State::kEnding;
    }
    pollfd entries[3] = {{endpoint_->channel()->fd, POLLIN, 0},
                         {endpoint_->events().fd(), POLLIN, 0},
                         {wake_.get(), POLLIN, 0}};
    const timespec left = left_until(ending ? std::min(deadline, now() + kFlushPause) : deadline);
    ::ppoll(entries, 3, &left, nullptr);
    std::lock_guard lock(poll_mutex_);
    uint64_t count;
    if (entries[0].revents != 0) disarm();
    if (entries[2].revents != 0 && state_.load(std::memory_order_relaxed) != State::kClosed) {
      static_cast<void>(!::read(wake_.get(), &count, sizeof(count)));
    }
    if (entries[1].revents != 0) look_at_events();
    found = something_to_deliver();
    if (!found && now() >= deadline) return false;
  }
  spin_budget_.learn(now() - start, spun);
  return true;
}

}  // namespace pnfsrdma::rdma::verbs
