// SPDX-License-Identifier: Apache-2.0
#include "library/queue.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <utility>

#include "library/last_error.h"

namespace pnfsrdma::library {
namespace {

using initiator::Stability;

struct Outcome {
  int64_t result = 0;
  uint64_t offset = 0;
};

template <typename T>
int64_t number_of(const Result<T>& result) {
  return result ? static_cast<int64_t>(*result) : -to_number(result.error());
}

Outcome run_one(const pnfsrdma_operation& operation) {
  OpenFile& file = *reinterpret_cast<OpenFile*>(operation.file);
  const Stability stability =
      (operation.flags & PNFSRDMA_DURABLE) != 0 ? Stability::kDataSync : file.stability();
  switch (operation.opcode) {
    case PNFSRDMA_READ:
      return {number_of(file.read(operation.buffer, operation.length, operation.offset)), operation.offset};
    case PNFSRDMA_WRITE:
      return {number_of(file.write(operation.buffer, operation.length, operation.offset, stability)),
              operation.offset};
    case PNFSRDMA_APPEND: {
      const auto at = file.append(operation.buffer, operation.length, stability);
      if (!at) return {-to_number(at.error()), 0};
      return {static_cast<int64_t>(operation.length), *at};
    }
    default: {
      const auto synced = file.sync(operation.opcode == PNFSRDMA_FDATASYNC);
      return {synced ? 0 : -to_number(synced.error()), 0};
    }
  }
}

bool is_operation(const pnfsrdma_operation& operation) {
  if (operation.file == nullptr || operation.opcode > PNFSRDMA_FSYNC) return false;
  if ((operation.flags & ~uint32_t{PNFSRDMA_DURABLE}) != 0) return false;
  const bool moves = operation.opcode <= PNFSRDMA_APPEND;
  if (moves && operation.buffer == nullptr && operation.length > 0) return false;
  return operation.length <= INT64_MAX && operation.offset <= INT64_MAX - operation.length;
}

}  // namespace

Result<std::unique_ptr<Queue>> Queue::create(Client& client, unsigned depth) {
  if (depth == 0 || depth > kDepthMax) return fail(EINVAL, "the depth of a queue is 1 to 4096");
  FileDescriptor event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!event) return std::unexpected(Error::from_errno("eventfd"));
  return std::unique_ptr<Queue>(new Queue(client, depth, std::move(event)));
}

Queue::Queue(Client& client, unsigned depth, FileDescriptor event)
    : client_(client), depth_(depth), event_(std::move(event)) {
  client_.queue_came();
}

Queue::~Queue() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  work_.notify_all();
  for (Thread& helper : helpers_) helper.join();
  client_.queue_left();
}

Result<size_t> Queue::submit(std::span<const pnfsrdma_operation> operations) {
  size_t count = 0;
  size_t wanted = 0;
  {
    const std::lock_guard lock(mutex_);
    while (count < operations.size() && taken_ < depth_ && is_operation(operations[count])) {
      ++reinterpret_cast<OpenFile*>(operations[count].file)->in_flight;
      waiting_.push_back(operations[count++]);
      ++taken_;
    }
    const size_t missing = waiting_.size() > idle_helpers_ ? waiting_.size() - idle_helpers_ : 0;
    wanted = std::min(missing, kHelpersMax - helpers_.size());
    if (wanted > 0) {
      sigset_t all, before;
      ::sigfillset(&all);
      (void)::pthread_sigmask(SIG_SETMASK, &all, &before);
      for (size_t i = 0; i < wanted; ++i) helpers_.emplace_back([this] { run(); });
      (void)::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    }
  }
  if (count > 0) work_.notify_all();
  if (count == 0 && !operations.empty()) {
    if (!is_operation(operations.front())) return fail(EINVAL, "not an operation");
    return fail(EAGAIN, "the queue is full");
  }
  return count;
}

void Queue::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    ++idle_helpers_;
    work_.wait(lock, [this] { return ending_ || !waiting_.empty(); });
    --idle_helpers_;
    if (waiting_.empty()) return;
    const pnfsrdma_operation operation = waiting_.front();
    waiting_.pop_front();
    lock.unlock();
    const Outcome outcome = run_one(operation);
    --reinterpret_cast<OpenFile*>(operation.file)->in_flight;
    lock.lock();
    finish(operation, outcome.result, outcome.offset);
  }
}

// Under mutex_.
void Queue::finish(const pnfsrdma_operation& operation, int64_t result, uint64_t offset) {
  done_.push_back({operation.user_data, result, offset});
  if (done_.size() > 1) return;  // it is readable already
  const uint64_t one = 1;
  (void)!::write(event_.get(), &one, sizeof one);
}

size_t Queue::take(std::span<pnfsrdma_completion> completions) {
  const std::lock_guard lock(mutex_);
  const size_t count = std::min(completions.size(), done_.size());
  std::copy_n(done_.begin(), count, completions.begin());
  done_.erase(done_.begin(), done_.begin() + static_cast<ptrdiff_t>(count));
  taken_ -= count;
  if (count > 0 && done_.empty()) {
    uint64_t told = 0;
    (void)!::read(event_.get(), &told, sizeof told);
  }
  return count;
}

Result<size_t> Queue::reap(std::span<pnfsrdma_completion> completions, int timeout_ms) {
  const SteadyTime deadline =
      timeout_ms < 0 ? SteadyTime::max() : steady_now() + std::chrono::milliseconds(timeout_ms);
  for (;;) {
    const size_t count = take(completions);
    const SteadyTime now = steady_now();
    if (count > 0 || completions.empty() || now >= deadline) return count;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - now).count();
    pollfd readable{event_.get(), POLLIN, 0};
    if (::poll(&readable, 1, timeout_ms < 0 ? -1 : static_cast<int>(left)) < 0)
      return std::unexpected(Error::from_errno("poll"));
  }
}

}  // namespace pnfsrdma::library
