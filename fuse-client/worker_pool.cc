// SPDX-License-Identifier: Apache-2.0
#include "fuse-client/worker_pool.h"

#include <linux/fuse.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "fuse-client/killed_caller.h"
#include "fuse-client/worker_buffer.h"
#include "shared/base/check.h"
#include "shared/base/log.h"
#include "shared/base/sync.h"

namespace pnfsrdma::fuse_client {
namespace {

// Ends a worker's read(2) of /dev/fuse with EINTR.
constexpr int kWakeSignal = SIGUSR2;
// A server that answers has done so within that.
constexpr Milliseconds kLong{1000};
// With the default number of threads fewer than the session has slots: each may hold one.
constexpr size_t kTimesTheLimit = 3;

void install_wake_signal() {
  struct sigaction action{};
  action.sa_handler = [](int) {};
  CHECK(::sigaction(kWakeSignal, &action, nullptr) == 0);
}

// Whose request it is: the thread's number, 0 when it is the kernel's own.
pid_t caller_of(const fuse_buf& request) {
  fuse_in_header header{};
  if (request.size >= sizeof header) std::memcpy(&header, request.mem, sizeof header);
  return static_cast<pid_t>(header.pid);
}

}  // namespace

WorkerPool::WorkerPool(fuse_session* session, initiator::DataPath& data_path, WorkerCounts& counts,
                       uint32_t threads_max)
    : session_(session),
      data_path_(data_path),
      threads_max_(threads_max),
      ended_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      idle_(counts.idle),
      running_(counts.running) {
  install_wake_signal();
}

WorkerPool::~WorkerPool() {
  (void)stop(SteadyTime::max());
}

Result<> WorkerPool::start() {
  if (!ended_) return std::unexpected(Error::from_errno("eventfd"));
  if (!add_worker()) return fail(ENOMEM, "starting the first worker: no memory for its buffer or thread");
  return {};
}

bool WorkerPool::add_worker() {
  const std::lock_guard lock(mutex_);
  if (stopping_ || workers_.size() >= limit()) return false;
  auto buffer = data_path_.make_buffer();
  if (!buffer) {
    log_warning("fuse", "worker-buffer-refused cause=\"{}\"", buffer.error().to_string());
    return false;
  }
  ++running_;
  ++idle_;
  Worker& worker = workers_.emplace_back();
  worker.thread = Thread([this, &worker, owned = std::move(*buffer)] {
    work(worker, *owned);
    --running_;
    note_end();
  });
  return true;
}

size_t WorkerPool::limit() const {
  const SteadyTime long_ago = steady_now() - kLong;
  const auto waits = [&](const Worker& worker) { return worker.busy_since.load() < long_ago; };
  const auto waiting = static_cast<size_t>(std::count_if(workers_.begin(), workers_.end(), waits));
  return std::min(threads_max_ + waiting, kTimesTheLimit * threads_max_);
}

void WorkerPool::relieve() {
  if (all_busy()) (void)add_worker();
}

void WorkerPool::work(Worker& worker, initiator::Buffer& buffer) {
  WorkerBuffer::set(&buffer);
  while (!fuse_session_exited(session_)) {
    // libfuse reads up to its own buffer size, which is what kBufferSize was made for.
    fuse_buf request{};
    request.mem = buffer.data();
    const int size = fuse_session_receive_buf(session_, &request);
    if (size == -EINTR || size == -EAGAIN) continue;
    if (size <= 0) break;  // unmounted, or the connection is dead
    // The last idle one leaves: somebody else has to listen. Costs a thread start a few times in a mount's
    // life.
    worker.busy_since = steady_now();
    if (--idle_ == 0) (void)add_worker();
    KilledCaller caller(caller_of(request));
    const initiator::CancellationScope scope(caller);
    fuse_session_process_buf(session_, &request);
    worker.busy_since = SteadyTime::max();
    ++idle_;
  }
  --idle_;
  WorkerBuffer::set(nullptr);
  fuse_session_exit(session_);
}

void WorkerPool::note_end() {
  const uint64_t one = 1;
  (void)!::write(ended_.get(), &one, sizeof one);
}

bool WorkerPool::stop(SteadyTime deadline) {
  fuse_session_exit(session_);
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  while (running_ > 0) {
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
