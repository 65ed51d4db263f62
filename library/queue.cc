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

#include "library/brick_request.h"
#include "library/last_error.h"
#include "shared/base/signals_blocked.h"

namespace pnfsrdma::library {

// An operation on its way.
class Queue::Slot final : private FlightListener {
 public:
  explicit Slot(Queue& queue) : queue_(queue), flight_(queue.connection().make_flight(*this)) {}

  pnfsrdma_operation operation{};
  bool flown = false;  // what is left of it is finish(), else all
  Slot* next = nullptr;

  OpenFile& file() const { return *reinterpret_cast<OpenFile*>(operation.file); }
  bool durable() const { return (operation.flags & PNFSRDMA_DURABLE) != 0 || file().durable(); }

  // False: a helper has to do it.
  bool start(Together* together) {
    const bool is_read = operation.opcode == PNFSRDMA_READ;
    if (!is_read && operation.opcode != PNFSRDMA_WRITE) return false;
    return flight_->start(
        file(), {is_read, !is_read && durable(), operation.buffer, operation.length, operation.offset},
        together);
  }
  Flight& flight() { return *flight_; }

 private:
  void completed() override { queue_.completed(*this); }

  Queue& queue_;
  const std::unique_ptr<Flight> flight_;
};

namespace {

template <typename T>
int64_t number_of(const Result<T>& result) {
  return result ? static_cast<int64_t>(*result) : -to_number(result.error());
}

bool is_operation(const pnfsrdma_operation& operation, const Connection& connection) {
  if (operation.file == nullptr || operation.opcode > PNFSRDMA_SIGNAL) return false;
  if (&reinterpret_cast<OpenFile*>(operation.file)->connection() != &connection) return false;
  if ((operation.flags & ~uint32_t{PNFSRDMA_DURABLE}) != 0) return false;
  switch (operation.opcode) {
    case PNFSRDMA_FDATASYNC:
    case PNFSRDMA_FSYNC:
      return true;
    case PNFSRDMA_ATOMIC_WRITE:
    case PNFSRDMA_COMPARE_AND_SWAP:
    case PNFSRDMA_FETCH_AND_ADD:
      return operation.buffer != nullptr && operation.length == sizeof(pnfsrdma_word);
    case PNFSRDMA_VERIFY:
      return operation.buffer != nullptr && operation.length == sizeof(pnfsrdma_verification);
    case PNFSRDMA_SIGNAL:
      return operation.buffer != nullptr;
    default:
      break;
  }
  if (operation.length > INT64_MAX || (operation.buffer == nullptr && operation.length > 0)) return false;
  return operation.opcode == PNFSRDMA_APPEND || operation.offset <= INT64_MAX - operation.length;
}

struct Outcome {
  int64_t result = 0;
  uint64_t offset = 0;
};

WordChange::Kind kind_of(uint32_t opcode) {
  switch (opcode) {
    case PNFSRDMA_COMPARE_AND_SWAP:
      return WordChange::Kind::kCompareAndSwap;
    case PNFSRDMA_FETCH_AND_ADD:
      return WordChange::Kind::kFetchAndAdd;
    default:
      return WordChange::Kind::kStore;
  }
}

int64_t run_word(const pnfsrdma_operation& operation, OpenFile& file) {
  auto& word = *static_cast<pnfsrdma_word*>(operation.buffer);
  const WordChange change{
      .kind = kind_of(operation.opcode), .operand = word.operand, .expected = word.expected};
  const bool stores = change.kind == WordChange::Kind::kStore;
  const auto before =
      change_word(file, change, operation.offset, stores ? uint32_t{PNFSRDMA_DURABLE} : operation.flags);
  if (!before) return -to_number(before.error());
  if (stores) return 0;
  word.old = *before;
  return change.kind == WordChange::Kind::kCompareAndSwap && *before == word.expected ? 1 : 0;
}

int64_t run_verification(const pnfsrdma_operation& operation, OpenFile& file) {
  const auto& wanted = *static_cast<const pnfsrdma_verification*>(operation.buffer);
  if (wanted.ranges == nullptr && wanted.count > 0) return -EFAULT;
  return number_of(verify(file, {wanted.ranges, wanted.count}, wanted.expected, wanted.found));
}

int64_t run_signal(const pnfsrdma_operation& operation, OpenFile& file) {
  const Result<> told =
      signal(file, {operation.offset, operation.length}, *static_cast<const uint64_t*>(operation.buffer));
  return told ? 0 : -to_number(told.error());
}

// All of it, and waiting for it.
Outcome run(const pnfsrdma_operation& operation, OpenFile& file, bool durable) {
  switch (operation.opcode) {
    case PNFSRDMA_READ:
      return {number_of(file.read(operation.buffer, operation.length, operation.offset)), operation.offset};
    case PNFSRDMA_WRITE:
      if (!file.appends()) {
        return {number_of(file.write(operation.buffer, operation.length, operation.offset, durable)),
                operation.offset};
      }
      [[fallthrough]];
    case PNFSRDMA_APPEND: {
      const auto at = file.append(operation.buffer, operation.length, durable);
      if (!at) return {-to_number(at.error()), 0};
      return {static_cast<int64_t>(operation.length), *at};
    }
    case PNFSRDMA_ATOMIC_WRITE:
    case PNFSRDMA_COMPARE_AND_SWAP:
    case PNFSRDMA_FETCH_AND_ADD:
      return {run_word(operation, file), operation.offset};
    case PNFSRDMA_VERIFY:
      return {run_verification(operation, file), 0};
    case PNFSRDMA_SIGNAL:
      return {run_signal(operation, file), operation.offset};
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

Result<std::unique_ptr<Queue>> Queue::create(Connection& connection, unsigned depth) {
  if (depth == 0 || depth > kDepthMax) return fail(EINVAL, "the depth of a queue is 1 to 4096");
  FileDescriptor event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!event) return std::unexpected(Error::from_errno("eventfd"));
  FileDescriptor watched(::epoll_create1(EPOLL_CLOEXEC));
  if (!watched) return std::unexpected(Error::from_errno("epoll_create1"));
  const int completions = connection.completion_fd();
  if (completions < 0) return std::unexpected(Error::from_errno("epoll_create1"));
  watch(watched.get(), event.get());
  std::unique_ptr<Queue> queue(
      new Queue(connection, depth, std::move(event), std::move(watched), completions));
  // The first one, so that there is always one.
  try {
    const SignalsBlocked blocked;
    queue->helpers_.emplace_back([&made = *queue] { made.help(); });
  } catch (const std::system_error& error) {
    return fail(error.code().value(), "a thread of the queue");
  }
  return queue;
}

Queue::Queue(Connection& connection, unsigned depth, FileDescriptor event, FileDescriptor watched,
             int completions)
    : use_(connection),
      event_(std::move(event)),
      watched_(std::move(watched)),
      completions_(completions),
      done_(depth) {
  all_.reserve(depth);
  for (unsigned i = 0; i < depth; ++i) free_.add(*all_.emplace_back(std::make_unique<Slot>(*this)));
}

Queue::~Queue() {
  for (;;) {
    (void)finish_completed();
    std::unique_lock lock(mutex_);
    if (running_ == 0) {
      ending_ = true;
      break;
    }
    unsignal();
    watch_completions();
    lock.unlock();
    pollfd readable{watched_.get(), POLLIN, 0};
    (void)::poll(&readable, 1, 10);
  }
  work_.notify_all();
  for (Thread& helper : helpers_) helper.join();
}

Result<size_t> Queue::submit(std::span<const pnfsrdma_operation> operations) {
  class Several final : public Starter {
   public:
    Several(Queue& queue, std::span<const pnfsrdma_operation> operations)
        : queue_(queue), operations_(operations) {}
    void start(Together& together) override { count = queue_.start(operations_, &together); }
    size_t count = 0;

   private:
    Queue& queue_;
    const std::span<const pnfsrdma_operation> operations_;
  };
  size_t count = 0;
  if (operations.size() > 1) {
    Several several(*this, operations);
    connection().together(several);
    count = several.count;
  } else {
    count = start(operations, nullptr);
  }
  if (count > 0 || operations.empty()) return count;
  if (!is_operation(operations.front(), connection())) return fail(EINVAL, "not an operation");
  return fail(EAGAIN, "the queue is full");
}

// How many were taken.
size_t Queue::start(std::span<const pnfsrdma_operation> operations, Together* together) {
  size_t count = 0;
  for (; count < operations.size() && is_operation(operations[count], connection()); ++count) {
    Slot* slot = nullptr;
    {
      const std::lock_guard lock(mutex_);
      // What is done and not reaped takes part in the depth: it needs its place in the ring.
      if (running_ + done_count_ == done_.size()) break;
      slot = free_.take();
      ++running_;
      ++flying_;
      if (!watching_) watch_completions();
    }
    slot->operation = operations[count];
    ++slot->file().in_flight;
    slot->flown = true;  // before it may complete
    if (!slot->start(together)) {
      slot->flown = false;
      {
        const std::lock_guard lock(mutex_);
        --flying_;
      }
      leave_to_helper(*slot);
    }
  }
  return count;
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
  const Outcome outcome = slot.flown ? Outcome{number_of(slot.flight().finish()), slot.operation.offset}
                                     : run(slot.operation, slot.file(), slot.durable());
  finish(slot, outcome.result, outcome.offset);
}

// By whoever polls, perhaps not a thread of the program's: it takes no time.
void Queue::completed(Slot& slot) {
  const std::lock_guard lock(mutex_);
  --flying_;
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

// Under mutex_. It serves the whole connection: whoever has nothing in flight there does not want to be woken by what
// others read. One system call when that changes; none for who keeps something in flight.
void Queue::watch_completions() {
  const bool wanted = flying_ > 0;
  if (watching_ == wanted) return;
  watching_ = wanted;
  if (wanted) {
    watch(watched_.get(), completions_);
  } else {
    (void)::epoll_ctl(watched_.get(), EPOLL_CTL_DEL, completions_, nullptr);
  }
}

// False: there was nothing.
bool Queue::finish_completed() {
  connection().progress();
  bool any = false;
  for (;; any = true) {
    Slot* slot = nullptr;
    {
      const std::lock_guard lock(mutex_);
      slot = completed_.take();
    }
    if (slot == nullptr) return any;
    if (const auto moved = slot->flight().try_finish()) {
      finish(*slot, number_of(*moved), slot->operation.offset);
    } else {
      leave_to_helper(*slot);
    }
  }
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
    (void)finish_completed();
    const size_t count = take(completions);
    if (count > 0 || completions.empty()) return count;
    if (timeout_ms == 0) {
      const std::lock_guard lock(mutex_);
      watch_completions();  // woken for nothing, perhaps
      return count;
    }
    const SteadyTime now = steady_now();
    if (now >= deadline) return size_t{0};
    {
      const std::lock_guard lock(mutex_);
      unsignal();
      if (done_count_ > 0 || completed_.count > 0) continue;
      watch_completions();
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
