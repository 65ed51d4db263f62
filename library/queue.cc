// SPDX-License-Identifier: Apache-2.0
#include "library/queue.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <new>
#include <system_error>
#include <utility>

#include "library/last_error.h"
#include "shared/base/signals_blocked.h"

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
  // Of before it began: a loss that another operation has told is told to this one, too.
  initiator::ErrorCursor losses;
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

bool is_operation(const pnfsrdma_operation& operation, const Client& client) {
  if (operation.file == nullptr || operation.opcode > PNFSRDMA_FSYNC) return false;
  if (&reinterpret_cast<OpenFile*>(operation.file)->client() != &client) return false;
  if ((operation.flags & ~uint32_t{PNFSRDMA_DURABLE}) != 0) return false;
  if (operation.opcode > PNFSRDMA_APPEND) return true;
  if (operation.length > INT64_MAX || (operation.buffer == nullptr && operation.length > 0)) return false;
  return operation.opcode == PNFSRDMA_APPEND || operation.offset <= INT64_MAX - operation.length;
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
      if (!file.appends()) {
        return {number_of(file.write(operation.buffer, operation.length, operation.offset, stability)),
                operation.offset};
      }
      [[fallthrough]];
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
  std::unique_ptr<Queue> queue(new Queue(client, depth, std::move(event), std::move(watched), connections));
  // The first one, so that there is always one.
  try {
    const SignalsBlocked blocked;
    queue->helpers_.emplace_back([&made = *queue] { made.help(); });
  } catch (const std::system_error& error) {
    return fail(error.code().value(), "a thread of the queue");
  }
  return queue;
}

Queue::Queue(Client& client, unsigned depth, FileDescriptor event, FileDescriptor watched, int connections)
    : client_(client),
      event_(std::move(event)),
      watched_(std::move(watched)),
      connections_(connections),
      done_(depth) {
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
    unsignal();
    watch_connections();
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
  for (; count < operations.size() && is_operation(operations[count], client_); ++count) {
    Slot* slot = nullptr;
    {
      const std::lock_guard lock(mutex_);
      // What is done and not reaped takes part in the depth: it needs its place in the ring.
      if (running_ + done_count_ == done_.size()) break;
      slot = free_.take();
      ++running_;
      ++at_bricks_;
      if (!watching_) watch_connections();
    }
    slot->operation = operations[count];
    ++slot->file().in_flight;
    slot->losses = slot->file().data().losses_from_now();
    if (!slot->start(doorbell)) {
      slot->due = Slot::Due::kAll;
      {
        const std::lock_guard lock(mutex_);
        --at_bricks_;
      }
      leave_to_helper(*slot);
    }
  }
  if (doorbell == Doorbell::kLater) client_.data_path().ring();
  if (count > 0 || operations.empty()) return count;
  if (!is_operation(operations.front(), client_)) return fail(EINVAL, "not an operation");
  return fail(EAGAIN, "the queue is full");
}

void Queue::leave_to_helper(Slot& slot) {
  {
    const std::lock_guard lock(mutex_);
    waiting_.add(slot);
    if (waiting_.count > idle_helpers_ && helpers_.size() < kHelpersMax) {
      const SignalsBlocked blocked;
      try {
        helpers_.emplace_back([this] { help(); });
      } catch (const std::system_error&) {
        // No more threads for this process: those that are there take it.
      }
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
    try {
      do_due(*slot);
    } catch (const std::bad_alloc&) {
      finish(*slot, -ENOMEM, 0);
    } catch (const std::exception&) {
      finish(*slot, -EIO, 0);
    }
    lock.lock();
  }
}

void Queue::do_due(Slot& slot) {
  if (slot.due == Slot::Due::kFinish) {
    slot.moved = number_of(slot.finish());
    slot.due = Slot::Due::kSync;
  }
  const bool is_short = slot.moved >= 0 && static_cast<uint64_t>(slot.moved) < slot.operation.length;
  if (slot.due == Slot::Due::kAll || (slot.is_read() && is_short)) {
    const Outcome outcome = run(slot.operation, slot.file(), slot.stability());
    return finish(slot, outcome.result, outcome.offset);
  }
  if (slot.moved >= 0 && slot.must_be_durable()) {
    const auto durable = slot.file().make_durable(slot.losses);
    if (!durable) slot.moved = -to_number(durable.error());
  }
  finish(slot, slot.moved, slot.operation.offset);
}

// By whoever polls, perhaps not a thread of the program's: it takes no time.
void Queue::completed(Slot& slot) {
  const std::lock_guard lock(mutex_);
  --at_bricks_;
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

// Under mutex_. The connections serve the whole client: whoever has nothing in flight there does not want to be
// woken by what others read. One system call when that changes; none for who keeps something in flight.
void Queue::watch_connections() {
  const bool wanted = at_bricks_ > 0;
  if (watching_ == wanted) return;
  watching_ = wanted;
  if (wanted) {
    watch(watched_.get(), connections_);
  } else {
    (void)::epoll_ctl(watched_.get(), EPOLL_CTL_DEL, connections_, nullptr);
  }
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
  if (is_short ||
      (slot.moved >= 0 && slot.must_be_durable() && !slot.file().data().is_durable(slot.losses))) {
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
    if (count > 0 || completions.empty()) return count;
    if (timeout_ms == 0) {
      const std::lock_guard lock(mutex_);
      watch_connections();  // woken for nothing, perhaps
      return count;
    }
    const SteadyTime now = steady_now();
    if (now >= deadline) return size_t{0};
    {
      const std::lock_guard lock(mutex_);
      unsignal();
      if (done_count_ > 0 || completed_.count > 0) continue;
      watch_connections();
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
