// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/server/measurement.h"

#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <random>

#include "shared/base/check.h"
#include "tests/bench/percentiles.h"

namespace pnfsrdma::bench {
namespace {

constexpr double kWarmUp = 0.2;
constexpr Milliseconds kTurnMax{1000};
// How long what was due in an open loop is waited for after its end.
constexpr std::chrono::seconds kDrain{5};

std::chrono::nanoseconds nanoseconds(double seconds) {
  return std::chrono::nanoseconds(static_cast<int64_t>(seconds * 1e9));
}

double in_seconds(std::chrono::nanoseconds time) {
  return static_cast<double>(time.count()) / 1e9;
}

double processor_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

// Of all threads of the server's processes; 0 where they are not known or gone.
double processor_seconds(const Target& target) {
  double sum = 0;
  for (const int process : target.processes) {
    clockid_t clock{};
    timespec time{};
    if (::clock_getcpuclockid(process, &clock) != 0 || ::clock_gettime(clock, &time) != 0) return 0;
    sum += static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
  }
  return sum;
}

// What both loops count, and by which clock.
class Count {
 public:
  Count(EventLoop& loop, Fleet& fleet, double seconds)
      : loop_(loop),
        fleet_(fleet),
        begun_(loop.now()),
        counted_from_(begun_ + nanoseconds(seconds * kWarmUp)),
        end_(begun_ + nanoseconds(seconds)),
        processor_(processor_seconds()),
        delays_(fleet.delays()),
        server_(processor_seconds(fleet.target())) {}

  SteadyTime begun() const { return begun_; }
  SteadyTime end() const { return end_; }
  // `when` says whether it is counted.
  void add(SteadyTime when, std::chrono::nanoseconds took) {
    ++ended_;
    if (when >= counted_from_ && when < end_) microseconds_.add(in_seconds(took) * 1e6);
  }
  // Called when the slice is over.
  void stop_clock() {
    busy_ = (processor_seconds() - processor_) / in_seconds(loop_.now() - begun_);
    if (ended_ == 0) return;
    server_us_ = (processor_seconds(fleet_.target()) - server_) / static_cast<double>(ended_) * 1e6;
  }
  Slice slice() {
    Slice slice;
    slice.operations = microseconds_.count();
    slice.done = ended_;
    slice.seconds = in_seconds(end_ - counted_from_);
    slice.rate = static_cast<double>(slice.operations) / slice.seconds;
    slice.p50_us = microseconds_.at(50);
    slice.p99_us = microseconds_.at(99);
    slice.max_us = microseconds_.at(100);
    slice.delays = fleet_.delays() - delays_;
    slice.server_us = std::max(0.0, server_us_);
    slice.generator = busy_;
    return slice;
  }

 private:
  EventLoop& loop_;
  Fleet& fleet_;
  const SteadyTime begun_;
  const SteadyTime counted_from_;
  const SteadyTime end_;
  const double processor_;
  const uint64_t delays_;
  const double server_;
  uint64_t ended_ = 0;  // warm-up and all
  double server_us_ = 0;
  double busy_ = 0;
  Percentiles microseconds_;
};

class ClosedLoop {
 public:
  ClosedLoop(EventLoop& loop, Fleet& fleet, const Row& row, double seconds)
      : loop_(loop), fleet_(fleet), row_(row), count_(loop, fleet, seconds) {}

  Result<Slice> run() {
    for (const auto& worker : fleet_.workers()) begin(*worker, loop_.now());
    while (running_ > 0) {
      loop_.run_once(kTurnMax);
      if (!stopped_ && loop_.now() >= count_.end()) stop();
    }
    if (!outcome_) return std::unexpected(outcome_.error());
    return count_.slice();
  }

 private:
  void stop() {
    count_.stop_clock();
    stopped_ = true;
  }

  void begin(Worker& worker, SteadyTime now) {
    ++running_;
    worker.play(row_.run, [this, &worker, now](Result<> outcome) { ended(worker, now, std::move(outcome)); });
  }

  void ended(Worker& worker, SteadyTime begun, Result<> outcome) {
    --running_;
    if (!outcome && outcome_) outcome_ = std::move(outcome);
    const SteadyTime now = loop_.now();
    count_.add(now, now - begun);
    if (outcome_ && now < count_.end()) begin(worker, now);
  }

  EventLoop& loop_;
  Fleet& fleet_;
  const Row& row_;
  Count count_;
  size_t running_ = 0;
  bool stopped_ = false;
  Result<> outcome_;
};

class OpenLoop {
 public:
  OpenLoop(EventLoop& loop, Fleet& fleet, const Row& row, double rate, double seconds)
      : loop_(loop),
        fleet_(fleet),
        row_(row),
        rate_(rate),
        seconds_(seconds),
        count_(loop, fleet, seconds),
        // The event loop's own timers know milliseconds only.
        timer_(::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)),
        next_(count_.begun()) {
    CHECK(timer_);
    for (const auto& worker : fleet_.workers()) {
      if (worker->slot == 0) queues_.emplace_back();
      queues_.back().idle.push_back(worker.get());
    }
  }

  Result<Slice> run() {
    loop_.watch(timer_.get(), EPOLLIN, [this](uint32_t) { due(); });
    advance();
    set_timer();
    while (outcome_ && (loop_.now() < count_.end() || (waiting_ + running_ > 0 && !drained()))) {
      loop_.run_once(std::chrono::ceil<Milliseconds>(nanoseconds(0.05)));
      if (!stopped_ && loop_.now() >= count_.end()) stop();
    }
    loop_.unwatch(timer_.get());
    give_up();
    while (running_ > 0) loop_.run_once(kTurnMax);
    if (!outcome_) return std::unexpected(outcome_.error());
    Slice slice = count_.slice();
    slice.offered = rate_;
    slice.unfinished = unfinished_;
    return slice;
  }

 private:
  struct Queue {
    std::vector<Worker*> idle;
    std::deque<SteadyTime> waiting;  // when each was due
  };

  void advance() {
    std::exponential_distribution<double> gap(rate_);
    next_ += nanoseconds(gap(random_));
  }

  void set_timer() {
    const auto since_boot = std::chrono::duration_cast<std::chrono::nanoseconds>(next_.time_since_epoch());
    itimerspec when{};
    when.it_value.tv_sec = since_boot.count() / 1'000'000'000;
    when.it_value.tv_nsec = since_boot.count() % 1'000'000'000;
    CHECK(::timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &when, nullptr) == 0);
  }

  void due() {
    uint64_t expirations = 0;
    [[maybe_unused]] const ssize_t got = ::read(timer_.get(), &expirations, sizeof expirations);
    const SteadyTime now = loop_.now();
    std::uniform_int_distribution<size_t> any(0, queues_.size() - 1);
    while (next_ <= now && next_ < count_.end()) {
      Queue& queue = queues_[any(random_)];
      queue.waiting.push_back(next_);
      ++waiting_;
      begin_some(queue);
      advance();
    }
    if (next_ < count_.end()) set_timer();
  }

  void begin_some(Queue& queue) {
    while (outcome_ && !given_up_ && !queue.idle.empty() && !queue.waiting.empty()) {
      Worker* const worker = queue.idle.back();
      queue.idle.pop_back();
      const SteadyTime due = queue.waiting.front();
      queue.waiting.pop_front();
      --waiting_;
      ++running_;
      worker->play(row_.run, [this, &queue, worker, due](Result<> outcome) {
        --running_;
        queue.idle.push_back(worker);
        if (!outcome && outcome_) outcome_ = std::move(outcome);
        if (given_up_) {
          ++unfinished_;  // it has its place in the count as long as it was waited for
        }
        count_.add(due, loop_.now() - due);
        begin_some(queue);
      });
    }
  }

  void stop() {
    count_.stop_clock();
    stopped_ = true;
  }
  bool drained() const { return loop_.now() >= count_.end() + kDrain; }

  // What still waits took at least until now.
  void give_up() {
    given_up_ = true;
    const SteadyTime now = loop_.now();
    for (Queue& queue : queues_) {
      for (const SteadyTime due : queue.waiting) count_.add(due, now - due);
      unfinished_ += queue.waiting.size();
      queue.waiting.clear();
    }
  }

  EventLoop& loop_;
  Fleet& fleet_;
  const Row& row_;
  const double rate_;
  const double seconds_;
  Count count_;
  FileDescriptor timer_;
  std::mt19937_64 random_{4711};
  SteadyTime next_;
  std::deque<Queue> queues_;  // a client's; they stay where they are
  size_t waiting_ = 0;
  size_t running_ = 0;
  uint64_t unfinished_ = 0;
  bool stopped_ = false;
  bool given_up_ = false;
  Result<> outcome_;
};

}  // namespace

Result<Slice> measure_closed(EventLoop& loop, Fleet& fleet, const Row& row, double seconds) {
  return ClosedLoop(loop, fleet, row, seconds).run();
}

Result<Slice> measure_open(EventLoop& loop, Fleet& fleet, const Row& row, double rate, double seconds) {
  return OpenLoop(loop, fleet, row, rate, seconds).run();
}

}  // namespace pnfsrdma::bench
