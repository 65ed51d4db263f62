// SPDX-License-Identifier: Apache-2.0
#include "server/brickd/executor.h"

#include <pthread.h>

namespace pnfsrdma::brick {

Executor::Executor(EventLoop& loop, const std::string& name) : loop_(loop), thread_([this] { work(); }) {
  pthread_setname_np(thread_.native_handle(), name.c_str());
}

Executor::~Executor() {
  queue_.lock()->stopping = true;
  wake_.notify_all();
  thread_.join();
}

void Executor::run(std::function<void()> work, std::function<void()> done) {
  ++unfinished_;
  queue_.lock()->jobs.push_back({std::move(done), std::move(work)});
  wake_.notify_one();
}

void Executor::work() {
  for (;;) {
    Job job;
    {
      auto queue = queue_.lock();
      queue.wait(wake_, [](const Queue& now) { return now.stopping || !now.jobs.empty(); });
      if (queue->stopping) return;
      job = std::move(queue->jobs.front());
      queue->jobs.pop_front();
    }
    job.work();
    finish(std::move(job.done));
  }
}

void Executor::finish(std::function<void()> done) {
  loop_.post(lifetime_.guard([this, done = std::move(done)] {
    --unfinished_;
    done();
  }));
}

}  // namespace pnfsrdma::brick
