// SPDX-License-Identifier: Apache-2.0
#include "fuse-client/worker_pool.h"

#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "fuse-client/birth_question.h"
#include "fuse-client/killed_caller.h"
#include "fuse-client/worker_buffer.h"
#include "shared/base/check.h"
#include "shared/base/log.h"
#include "shared/base/sync.h"
#include "shared/initiator/brick/device.h"

namespace pnfsrdma::fuse_client {
namespace {

// Ends a worker's read(2) of /dev/fuse with EINTR.
constexpr int kWakeSignal = SIGUSR2;
// A server that answers has done so within that.
constexpr Milliseconds kLong{250};
// With the default number of threads fewer than the session has slots: each may hold one.
constexpr size_t kTimesTheLimit = 3;
constexpr size_t kPartOfADevice = 4;
// While workers are held up.
constexpr Milliseconds kWatchAgain{100};
constexpr size_t kLooksAtATime = 64;

void install_wake_signal() {
  struct sigaction action{};
  action.sa_handler = [](int) {};
  CHECK(::sigaction(kWakeSignal, &action, nullptr) == 0);
}

// What holds up a request that is long under way: the first of them that is silent. If all of them answer it is
// something else, the MDS for one, and nobody who only needs these devices shall wait for it.
DeviceLines::Device silent_one(const std::vector<initiator::Device*>& devices) {
  const auto silent = std::ranges::find_if(devices, [](auto* device) { return device->silent(kLong); });
  return silent == devices.end() ? nullptr : *silent;
}

DeviceLines::Limits limits_of(const MountOptions& options) {
  return {.workers_per_device = std::max<size_t>(options.threads / kPartOfADevice, 1),
          .workers_nowhere = options.threads,
          .requests = kParkedRequestsMax,
          .bytes = kParkedBytesMax};
}

}  // namespace

WorkerPool::WorkerPool(const Parts& parts)
    : parts_(parts), ended_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), lines_(limits_of(parts.options)) {
  install_wake_signal();
}

WorkerPool::~WorkerPool() {
  (void)stop(SteadyTime::max());
}

Result<> WorkerPool::start() {
  if (!ended_) return std::unexpected(Error::from_errno("eventfd"));
  if (!add_worker()) return fail(ENOMEM, "starting the first worker: no memory for its buffer or thread");
  watch_ = Thread([this] { watch(); });
  return {};
}

bool WorkerPool::add_worker() {
  const std::lock_guard lock(mutex_);
  if (stopping_ || workers_.size() >= limit()) return false;
  auto buffer = parts_.data_path.make_buffer(initiator::kBufferSize, initiator::Stores::kNone);
  if (!buffer) {
    log_warning("fuse", "worker-buffer-refused cause=\"{}\"", buffer.error().to_string());
    return false;
  }
  ++parts_.counts.running;
  ++parts_.counts.idle;
  Worker& worker = workers_.emplace_back();
  worker.thread = Thread([this, &worker, owned = std::move(*buffer)] {
    work(worker, *owned);
    --parts_.counts.running;
    note_end();
  });
  return true;
}

size_t WorkerPool::limit() {
  const SteadyTime long_ago = steady_now() - kLong;
  const auto waits = [&](Worker& worker) { return worker.task.lock()->since < long_ago; };
  const auto waiting = static_cast<size_t>(std::count_if(workers_.begin(), workers_.end(), waits));
  const size_t threads = parts_.options.threads;
  return std::min(threads + waiting, kTimesTheLimit * threads);
}

void WorkerPool::work(Worker& worker, initiator::Buffer& buffer) {
  WorkerBuffer::set(&buffer);
  std::atomic<uint32_t>& idle = parts_.counts.idle;
  while (!fuse_session_exited(parts_.session)) {
    // libfuse reads up to its own buffer size, which is what kBufferSize was made for.
    fuse_buf request{};
    request.mem = buffer.data();
    const int size = fuse_session_receive_buf(parts_.session, &request);
    if (size == -EINTR || size == -EAGAIN) continue;
    if (size <= 0) break;  // unmounted, or the connection is dead
    // The last idle one leaves: somebody else has to listen. Costs a thread start a few times in a mount's
    // life.
    if (--idle == 0 && !add_worker()) wake_watch();
    if (!put_off({buffer.data(), request.size})) serve(worker, buffer, request.size);
    ++idle;
  }
  --idle;
  WorkerBuffer::set(nullptr);
  fuse_session_exit(parts_.session);
}

// And what it takes along from a line.
void WorkerPool::serve(Worker& worker, initiator::Buffer& buffer, size_t size) {
  for (;;) {
    begin_task(worker, {buffer.data(), size});
    {
      KilledCaller caller(caller_of({buffer.data(), size}));
      const initiator::CancellationScope scope(caller);
      const BirthQuestion question({buffer.data(), size});
      fuse_buf request{};
      request.mem = buffer.data();
      request.size = size;
      fuse_session_process_buf(parts_.session, &request);
    }
    const auto next = end_task(worker);
    if (!next) return;
    size = next->message.size();
    std::memcpy(buffer.data(), next->message.data(), size);
  }
}

void WorkerPool::begin_task(Worker& worker, ByteSpan message) {
  auto task = worker.task.lock();
  task->since = steady_now();
  const auto request = data_request(message);
  if (!request) return;
  task->inode = parts_.inodes.at(request->node);
  task->range = request->range;
}

std::optional<DeviceLines::Parked> WorkerPool::end_task(Worker& worker) {
  const SteadyTime now = steady_now();
  auto task = worker.task.lock();
  const bool soon = now - task->since < kLong;
  task->since = SteadyTime::max();
  task->inode.reset();
  if (!task->in_line) return std::nullopt;
  auto next = lines_.left(&worker, soon);
  task->in_line = next.has_value();
  return next;
}

bool WorkerPool::put_off(ByteSpan message) {
  if (!lines_.any()) return false;
  const auto request = data_request(message);
  const auto file = request ? parts_.inodes.at(request->node)->data() : nullptr;
  if (!file) return false;
  const auto known = file->devices(request->range);
  const std::vector<DeviceLines::Device> devices(known.begin(), known.end());
  switch (lines_.admit(devices, message, caller_of(message), steady_now())) {
    case DeviceLines::Admission::kGo:
      return false;
    case DeviceLines::Admission::kParked:
      return true;
    case DeviceLines::Admission::kNoRoom:
      if (!all_busy()) return false;
      refuse(fuse_session_fd(parts_.session), message, ENOBUFS);
      return true;
  }
  return false;
}

void WorkerPool::note_end() {
  const uint64_t one = 1;
  (void)!::write(ended_.get(), &one, sizeof one);
}

// Once for each time that all workers are busy.
void WorkerPool::wake_watch() {
  if (crowded_.exchange(true)) return;
  const std::lock_guard lock(mutex_);
  watched_.notify_all();
}

void WorkerPool::watch() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (!lines_.any() && !all_busy()) {
      crowded_ = false;
      watched_.wait(lock, [this] { return stopping_ || crowded_; });
    }
    find_held_up();
    lock.unlock();
    if (all_busy()) (void)add_worker();
    end_parked();
    lock.lock();
    watched_.wait_for(lock, kWatchAgain, [this] { return stopping_; });
  }
}

void WorkerPool::find_held_up() {
  const SteadyTime long_ago = steady_now() - kLong;
  for (Worker& worker : workers_) {
    auto task = worker.task.lock();
    if (task->since >= long_ago || task->in_line || !task->inode) continue;
    const auto file = task->inode->data();
    if (!file) continue;
    lines_.held_up(&worker, silent_one(file->devices(task->range)));
    task->in_line = true;
  }
}

// Those whose caller was killed, or has waited as long as a soft mount waits.
void WorkerPool::end_parked() {
  const SteadyTime now = steady_now();
  const auto patience = session_options(parts_.options, {}).soft_limit();
  for (const DeviceLines::Look& look : lines_.look(kLooksAtATime)) {
    int error = 0;
    if (is_killed(look.caller)) {
      error = EINTR;
    } else if (parts_.options.persistence != initiator::Persistence::kHard && now - look.since > patience) {
      error = parts_.options.persistence == initiator::Persistence::kSoft ? EIO : ETIMEDOUT;
    }
    if (error == 0) continue;
    if (const auto parked = lines_.take(look.number))
      refuse(fuse_session_fd(parts_.session), parked->message, error);
  }
  parts_.counts.parked = lines_.parked();
  parts_.counts.parked_bytes = lines_.parked_bytes();
}

bool WorkerPool::stop(SteadyTime deadline) {
  fuse_session_exit(parts_.session);
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    watched_.notify_all();
  }
  if (watch_.joinable()) watch_.join();
  for (const DeviceLines::Parked& parked : lines_.close())
    refuse(fuse_session_fd(parts_.session), parked.message, ESHUTDOWN);
  while (parts_.counts.running > 0) {
    if (steady_now() >= deadline) return false;
    // Again and again: one that was just about to read would miss a single signal.
    {
      const std::lock_guard lock(mutex_);
      for (Worker& worker : workers_) {
        if (worker.thread.joinable()) (void)::pthread_kill(worker.thread.native_handle(), kWakeSignal);
      }
    }
    sleep_for(std::chrono::milliseconds(2));
  }
  const std::lock_guard lock(mutex_);
  for (Worker& worker : workers_) {
    if (worker.thread.joinable()) worker.thread.join();
  }
  workers_.clear();
  return true;
}

}  // namespace pnfsrdma::fuse_client
