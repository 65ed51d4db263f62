// SPDX-License-Identifier: Apache-2.0
#include "library/queue.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <utility>

#include "library/last_error.h"
#include "library/process.h"

namespace pnfsrdma::library {

using initiator::Stability;

// An operation on its way.
class Queue::Slot final : private initiator::PendingIoListener {
 public:
  explicit Slot(Queue& queue) : queue_(queue) {}

  // What a helper has to do.
  enum class Due : uint8_t { kAll, kFinish, kSync };

  pnfsrdma_operation operation{};
  Due due = Due::kAll;
  int64_t moved = 0;
  Slot* next = nullptr;

  OpenFile& file() const { return *reinterpret_cast<OpenFile*>(operation.file); }
  bool is_read() const { return operation.opcode == PNFSRDMA_READ; }
  Stability stability() const {
    return (operation.flags & PNFSRDMA_DURABLE) != 0 ? Stability::kDataSync : file().stability();
  }
  bool must_be_durable() const { return !is_read() && stability() == Stability::kDataSync; }

  // False: a helper has to do it.
  bool start(initiator::Doorbell doorbell) {
    if (operation.opcode > PNFSRDMA_WRITE) return false;
    return file().start(io_, is_read(), operation.buffer, operation.length, operation.offset, stability(),
                        *this, doorbell);
  }
  bool finish_may_wait() { return file().data().finish_may_wait(io_); }
  Result<size_t> finish() { return file().data().finish(io_); }

 private:
  void completed(initiator::PendingIo&) override { queue_.completed(*this); }

  Queue& queue_;
  initiator::PendingIo io_;
};

namespace {

template <typename T>
int64_t number_of(const Result<T>& result) {
  return result ? static_cast<int64_t>(*result) : -to_number(result.error());
}

bool is_operation(const pnfsrdma_operation& operation) {
  if (operation.file == nullptr || operation.opcode > PNFSRDMA_FSYNC) return false;
  if ((operation.flags & ~uint32_t{PNFSRDMA_DURABLE}) != 0) return false;
  const bool moves = operation.opcode <= PNFSRDMA_APPEND;
  if (moves && operation.buffer == nullptr && operation.length > 0) return false;
  return operation.length <= INT64_MAX && operation.offset <= INT64_MAX - operation.length;
}

struct Outcome {
  int64_t result = 0;
  uint64_t offset = 0;
};

// All of it, and waiting for it.
Outcome run(const pnfsrdma_operation& operation, OpenFile& file, Stability stability) {
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

void watch(int epoll, int fd) {
  epoll_event event{.events = EPOLLIN, .data = {.fd = fd}};
  (void)::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
}

}  // namespace

void Queue::Slots::add(Slot& slot) {
  slot.next = nullptr;
  (first == nullptr ? first : last->next) = &slot;
  last = &slot;
  ++count;
}

Queue::Slot* Queue::Slots::take() {
  Slot* const slot = first;
  if (slot == nullptr) return nullptr;
  first = slot->next;
  --count;
  return slot;
}

Result<std::unique_ptr<Queue>> Queue::create(Client& client, unsigned depth) {
  if (depth == 0 || depth > kDepthMax) return fail(EINVAL, "the depth of a queue is 1 to 4096");
  FileDescriptor event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!event) return std::unexpected(Error::from_errno("eventfd"));
  FileDescriptor watched(::epoll_create1(EPOLL_CLOEXEC));
  if (!watched) return std::unexpected(Error::from_errno("epoll_create1"));
  const int connections = client.data_path().completion_fd();
  if (connections < 0) return std::unexpected(Error::from_errno("epoll_create1"));
  watch(watched.get(), event.get());
  watch(watched.get(), connections);
  return std::unique_ptr<Queue>(new Queue(client, depth, std::move(event), std::move(watched)));
}

Queue::Queue(Client& client, unsigned depth, FileDescriptor event, FileDescriptor watched)
    : client_(client), event_(std::move(event)), watched_(std::move(watched)), done_(depth) {
  all_.reserve(depth);
  for (unsigned i = 0; i < depth; ++i) free_.add(*all_.emplace_back(std::make_unique<Slot>(*this)));
  client_.queue_came();
}

Queue::~Queue() {
  for (;;) {
    (void)settle_completed();
    std::unique_lock lock(mutex_);
    if (running_ == 0) {
      ending_ = true;
      break;
    }
    // The connections' own descriptors and deadlines take part in this.
    lock.unlock();
    pollfd readable{watched_.get(), POLLIN, 0};
    (void)::poll(&readable, 1, 10);
  }
  work_.notify_all();
  for (Thread& helper : helpers_) helper.join();
  client_.queue_left();
}

Result<size_t> Queue::submit(std::span<const pnfsrdma_operation> operations) {
  size_t count = 0;
  // Several go out with one doorbell.
  using initiator::Doorbell;
  const Doorbell doorbell = operations.size() > 1 ? Doorbell::kLater : Doorbell::kNow;
  for (; count < operations.size() && is_operation(operations[count]); ++count) {
    Slot* slot = nullptr;
    {
      const std::lock_guard lock(mutex_);
      // What is done and not reaped takes part in the depth: it needs its place in the ring.
      if (running_ + done_count_ == done_.size()) break;
      slot = free_.take();
      ++running_;
    }
    slot->operation = operations[count];
    ++slot->file().in_flight;
    if (!slot->start(doorbell)) {
      slot->due = Slot::Due::kAll;
      leave_to_helper(*slot);
    }
  }
  if (doorbell == Doorbell::kLater) client_.data_path().ring();
  if (count > 0 || operations.empty()) return count;
  if (!is_operation(operations.front())) return fail(EINVAL, "not an operation");
  return fail(EAGAIN, "the queue is full");
}

void Queue::leave_to_helper(Slot& slot) {
  {
    const std::lock_guard lock(mutex_);
    waiting_.add(slot);
    if (waiting_.count > idle_helpers_ && helpers_.size() < kHelpersMax) {
      const SignalsBlocked blocked;
      helpers_.emplace_back([this] { help(); });
    }
  }
  work_.notify_one();
}

void Queue::help() {
  std::unique_lock lock(mutex_);
  for (;;) {
    ++idle_helpers_;
    work_.wait(lock, [this] { return ending_ || waiting_.first != nullptr; });
    --idle_helpers_;
    Slot* const slot = waiting_.take();
    if (slot == nullptr) return;
    lock.unlock();
    if (slot->due == Slot::Due::kFinish) {
      slot->moved = number_of(slot->finish());
      slot->due = Slot::Due::kSync;
    }
    const bool is_short = slot->moved >= 0 && static_cast<uint64_t>(slot->moved) < slot->operation.length;
    if (slot->due == Slot::Due::kAll || (slot->is_read() && is_short)) {
      const Outcome outcome = run(slot->operation, slot->file(), slot->stability());
      finish(*slot, outcome.result, outcome.offset);
    } else {
      if (slot->moved >= 0 && slot->must_be_durable()) {
        if (const auto synced = slot->file().sync(true); !synced) slot->moved = -to_number(synced.error());
      }
      finish(*slot, slot->moved, slot->operation.offset);
    }
    lock.lock();
  }
}

// By whoever polls, perhaps not a thread of the program's: it takes no time.
void Queue::completed(Slot& slot) {
  const std::lock_guard lock(mutex_);
  completed_.add(slot);
  signal();
}

// Under mutex_. Whoever is inside of reap() and awake looks by himself.
void Queue::signal() {
  if (signalled_ || (reaping_ > 0 && sleeping_ == 0)) return;
  signalled_ = true;
  const uint64_t one = 1;
  (void)!::write(event_.get(), &one, sizeof one);
}

// Under mutex_.
void Queue::unsignal() {
  if (!std::exchange(signalled_, false)) return;
  uint64_t told = 0;
  (void)!::read(event_.get(), &told, sizeof told);
}

// False: there was nothing.
bool Queue::settle_completed() {
  client_.data_path().progress();
  bool any = false;
  for (;; any = true) {
    Slot* slot = nullptr;
    {
      const std::lock_guard lock(mutex_);
      slot = completed_.take();
    }
    if (slot == nullptr) return any;
    settle(*slot);
  }
}

// What the bricks have done is rarely not all: another client may have written behind the end that we know, a
// connection may have been lost, a new size has to be told before it is durable.
void Queue::settle(Slot& slot) {
  if (slot.finish_may_wait()) {
    slot.due = Slot::Due::kFinish;
    return leave_to_helper(slot);
  }
  slot.moved = number_of(slot.finish());
  const bool is_short = slot.moved >= 0 && static_cast<uint64_t>(slot.moved) < slot.operation.length;
  if (is_short || (slot.moved >= 0 && slot.must_be_durable() && !slot.file().is_durable())) {
    slot.due = Slot::Due::kSync;
    return leave_to_helper(slot);
  }
  finish(slot, slot.moved, slot.operation.offset);
}

void Queue::finish(Slot& slot, int64_t result, uint64_t offset) {
  --slot.file().in_flight;
  const std::lock_guard lock(mutex_);
  done_[(first_done_ + done_count_++) % done_.size()] = {slot.operation.user_data, result, offset};
  --running_;
  free_.add(slot);
  signal();
}

size_t Queue::take(std::span<pnfsrdma_completion> completions) {
  const std::lock_guard lock(mutex_);
  const size_t count = std::min(completions.size(), done_count_);
  for (size_t i = 0; i < count; ++i) {
    completions[i] = done_[first_done_];
    first_done_ = (first_done_ + 1) % done_.size();
  }
  done_count_ -= count;
  if (done_count_ == 0 && completed_.count == 0) unsignal();
  return count;
}

Result<size_t> Queue::reap(std::span<pnfsrdma_completion> completions, int timeout_ms) {
  const SteadyTime deadline =
      timeout_ms < 0 ? SteadyTime::max() : steady_now() + std::chrono::milliseconds(timeout_ms);
  // Comes and goes under the lock, so that nobody's completion is signalled to nobody.
  class Reaping {
   public:
    explicit Reaping(Queue& queue) : queue_(queue) {
      const std::lock_guard lock(queue_.mutex_);
      ++queue_.reaping_;
    }
    ~Reaping() {
      const std::lock_guard lock(queue_.mutex_);
      --queue_.reaping_;
      if (queue_.done_count_ > 0 || queue_.completed_.count > 0) queue_.signal();
    }

   private:
    Queue& queue_;
  };
  const Reaping reaping(*this);
  for (;;) {
    (void)settle_completed();
    const size_t count = take(completions);
    if (count > 0 || completions.empty() || timeout_ms == 0) return count;
    const SteadyTime now = steady_now();
    if (now >= deadline) return size_t{0};
    {
      const std::lock_guard lock(mutex_);
      unsignal();
      if (done_count_ > 0 || completed_.count > 0) continue;
      ++sleeping_;
    }
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - now).count();
    pollfd readable{watched_.get(), POLLIN, 0};
    const int ready = ::poll(&readable, 1, timeout_ms < 0 ? -1 : static_cast<int>(left));
    const int number = errno;
    {
      const std::lock_guard lock(mutex_);
      --sleeping_;
    }
    if (ready < 0) return fail(number, "poll");
  }
}

}  // namespace pnfsrdma::library
