// SPDX-License-Identifier: Apache-2.0
#include "shared/rdma/iwarp/queue_pair.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "shared/base/log.h"
#include "shared/base/sync.h"

namespace pnfsrdma::rdma::iwarp {
namespace {

// How long the remains of a broken peer's stream are read before its Terminate is given up.
constexpr Milliseconds kDrainTime{500};
// Steps one poll() takes before it returns to its caller, however much the peer sends.
constexpr int kStepsPerPoll = 64;

SteadyTime now() {
  return steady_now();
}

}  // namespace

IwarpQueuePair::IwarpQueuePair(std::unique_ptr<Stream> stream, std::shared_ptr<SoftwareDomain> domain,
                               const Agreement& agreement)
    : stream_(std::move(stream)),
      domain_(std::move(domain)),
      limits_(agreement.limits),
      peer_(stream_->peer()),
      completions_(limits_),
      requester_(limits_, *domain_, counters_, completions_),
      responder_(limits_, agreement.inbound_depth, *domain_, counters_, completions_),
      may_send_(agreement.first_to_speak),
      batch_(agreement.crc),
      reader_(agreement.crc, *this) {}

IwarpQueuePair::~IwarpQueuePair() {
  // Unread input would turn the close into a reset, which could overtake a Terminate.
  for (int i = 0; i < kStepsPerPoll && state_ == State::kTerminating; ++i) {
    if (reader_.discard(*stream_) != Input::kProgress) break;
  }
  fail();
}

Result<> IwarpQueuePair::check_connected() const {
  if (ready()) return {};
  return pnfsrdma::fail(ENOTCONN, "the connection to " + peer_ + " has ended");
}

Result<> IwarpQueuePair::post_write(uint64_t work_id, std::span<const LocalSlice> source,
                                    RemoteSlice target) {
  std::lock_guard lock(mutex_);
  TRY(check_connected());
  return requester_.post_write(work_id, source, target);
}

Result<> IwarpQueuePair::post_read(uint64_t work_id, LocalSlice sink, RemoteSlice source) {
  std::lock_guard lock(mutex_);
  TRY(check_connected());
  return requester_.post_read(work_id, sink, source);
}

Result<> IwarpQueuePair::post_send(uint64_t work_id, std::span<const LocalSlice> message) {
  std::lock_guard lock(mutex_);
  TRY(check_connected());
  return requester_.post_send(work_id, message);
}

Result<> IwarpQueuePair::post_receive(uint64_t work_id, LocalSlice buffer) {
  std::lock_guard lock(mutex_);
  TRY(check_connected());
  return responder_.post_receive(work_id, buffer);
}

Result<> IwarpQueuePair::post_flush(uint64_t work_id, RemoteSlice target, FlushLevel level) {
  std::lock_guard lock(mutex_);
  TRY(check_connected());
  return requester_.post_flush(work_id, target, level);
}

Result<> IwarpQueuePair::post_atomic_write(uint64_t work_id, uint64_t value, RemoteSlice target) {
  std::lock_guard lock(mutex_);
  TRY(check_connected());
  return requester_.post_atomic_write(work_id, value, target);
}

void IwarpQueuePair::submit() {
  bool full_with_waiter;
  {
    Lock lock(mutex_);
    if (!ready()) return;
    requester_.submit();
    pump(lock);
    fresh_ = !skipped_;
    full_with_waiter = socket_full_ && waiting_;
    if (waiting_ && !completions_.empty()) {
      // SENDs complete here, and the waiter sleeps in recv(2). From now on it waits so that it can be woken;
      // this first time it finds out within its longest sleep.
      wakeable_ = true;
      stream_->wake();
    }
  }
  if (full_with_waiter) help_full_socket();
}

// The waiter sleeps in recv(2) and would not notice that the socket has room again; we push on while it
// serves input. A waiter that comes later looks at socket_full_ first and waits for both.
void IwarpQueuePair::help_full_socket() {
  for (;;) {
    stream_->wait_ready(false, true, now() + Milliseconds(10));
    Lock lock(mutex_);
    if (!ready()) return;
    pump(lock);
    if (!socket_full_ || !waiting_) return;
  }
}

size_t IwarpQueuePair::poll(std::span<Completion> completions) {
  {
    Lock lock(mutex_);
    if (size_t count = completions_.take(completions); count > 0) return count;
    if (state_ == State::kClosed) return 0;
    if (ready()) requester_.submit();
    pump(lock);
    // No answer can be here yet, and the time for looking is better spent asleep, see wait(). A second look
    // is a real one.
    skipped_ = std::exchange(fresh_, false);
    if (skipped_) return 0;
  }
  for (int step = 0; step < kStepsPerPoll; ++step) {
    if (!ready()) {
      drain(now());
      break;
    }
    Input input = reader_.receive(*stream_);
    if (input_came(input) || input != Input::kProgress) break;
  }
  Lock lock(mutex_);
  return completions_.take(completions);
}

bool IwarpQueuePair::wait(SteadyTime deadline) {
  for (bool first = true;; first = false) {
    bool full, wakeable;
    {
      Lock lock(mutex_);
      if (!completions_.empty() || state_ == State::kClosed) return true;
      if (socket_full_) pump(lock);
      full = socket_full_;
      wakeable = wakeable_;
      waiting_ = !full;
      fresh_ = skipped_ = false;
    }
    if (!first && now() >= deadline) break;
    Input input = Input::kNothing;
    if (state_ == State::kTerminating) {
      drain(deadline);
    } else if (full || wakeable) {
      if (stream_->wait_ready(true, full, deadline)) input = reader_.receive(*stream_);
    } else if (!reader_.wants_direct() || (input = reader_.receive(*stream_)) == Input::kNothing) {
      // No spinning: a waiter that sleeps at once lets the kernel run the peer's thread where it wakes it, on
      // this CPU; one that spins makes it wake another CPU (measured with two: 9 us per READ against 100 us).
      input = reader_.receive_blocking(*stream_, deadline);
    }
    if (input_came(input)) return true;
  }
  Lock lock(mutex_);
  waiting_ = false;
  return !completions_.empty() || state_ == State::kClosed;
}

// What a receive brought has been processed; now what it made possible is sent. True when poll() has work.
bool IwarpQueuePair::input_came(Input input) {
  Lock lock(mutex_);
  waiting_ = false;
  if (ready() && input == Input::kEnd) {
    close(lock, Outcome::kConnectionLost);
  } else if (ready() && input == Input::kError) {
    break_off(lock);
    pump(lock);
  } else if (ready() && input == Input::kProgress) {
    pump(lock);
  }
  return !completions_.empty() || state_ == State::kClosed;
}

// The peer has broken the protocol: what is under way ends, and it is told.
void IwarpQueuePair::break_off(Lock& lock) {
  const SenderPause pause(*this, lock);
  if (!ready()) return;
  may_send_ = true;
  begin_terminating(reader_.verdict(), reader_.failed_header());
  requester_.end_broken(Outcome::kConnectionLost);
  responder_.end();
}

void IwarpQueuePair::begin_terminating(TerminateCode code, ByteSpan failed) {
  log_info("iwarp", "terminate peer={} layer={} type={} code={:#04x}", peer_, code.layer, code.type,
           code.code);
  state_ = State::kTerminating;
  terminate_code_ = code;
  terminate_header_size_ = std::min(failed.size(), terminate_header_.size());
  std::copy_n(failed.begin(), terminate_header_size_, terminate_header_.begin());
  drain_until_ = now() + kDrainTime;
}

// Throws input away until `deadline`, or until the peer hangs up or its time is over: then the stream is
// closed.
void IwarpQueuePair::drain(SteadyTime deadline) {
  for (;;) {
    if (state_ != State::kTerminating) return;
    Input input = reader_.discard(*stream_);
    Lock lock(mutex_);
    pump(lock);
    if (input == Input::kEnd || now() >= drain_until_) return close(lock, Outcome::kFlushed);
    if (!completions_.empty() || now() >= deadline) return;
    lock.unlock();
    if (input == Input::kNothing) stream_->wait_ready(true, false, std::min(deadline, drain_until_));
  }
}

IwarpQueuePair::SenderPause::SenderPause(IwarpQueuePair& queue_pair, Lock& lock) : queue_pair_(queue_pair) {
  ++queue_pair_.pauses_;
  // It takes no longer than to copy what the socket takes: nobody blocks in it.
  queue_pair_.send_left_.wait(lock, [this] { return !queue_pair_.in_send_; });
}

void IwarpQueuePair::close(Lock& lock, Outcome outcome) {
  const SenderPause pause(*this, lock);
  end(outcome);
  if (sending_) return;  // it cleans up itself
  batch_.clear();
  socket_full_ = false;
}

void IwarpQueuePair::end(Outcome outcome) {
  if (state_ == State::kClosed) return;
  state_ = State::kClosed;
  requester_.end(outcome);
  responder_.end();
  stream_->shut_down();
}

void IwarpQueuePair::fail() {
  Lock lock(mutex_);
  close(lock, Outcome::kFlushed);
}

}  // namespace pnfsrdma::rdma::iwarp
