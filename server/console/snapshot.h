// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>

#include "server/console/administration.h"
#include "server/console/control_loop.h"
#include "shared/base/sync.h"

namespace pnfsrdma::console {

// What the control loop last said of something: asked for again when it is older than 100 ms, or than ten
// times what it took the loop to tell, so that however many ask, the loop spends a tenth of its time on them
// at most. One caller asks, the others wait for its answer. Thread-safe.
template <typename T>
class Snapshot {
 public:
  static constexpr std::chrono::microseconds kFresh{100'000};

  using Done = Administration::Done<Administration::Later<T>>;
  using Take = std::function<void(Done)>;

  Snapshot(ControlLoop& loop, std::function<T()> take, Milliseconds deadline = kLoopDeadline)
      : Snapshot(loop, Take([take = std::move(take)](const Done& done) {
                   const auto value = std::make_shared<T>(take());
                   done([value] { return std::move(*value); });
                 }),
                 deadline) {}
  // Where the loop itself has to ask somebody, or takes several turns: `take` calls `done` once, at once or later.
  Snapshot(ControlLoop& loop, Take take, Milliseconds deadline = kLoopDeadline)
      : loop_(loop), take_(std::move(take)), deadline_(deadline) {}

  // EAGAIN, ETIMEDOUT: within the loop's deadline, however many wait. What `take` fails with.
  Result<std::shared_ptr<const T>> get() {
    const auto asked = steady_now();
    const std::lock_guard lock(mutex_);
    const auto now = steady_now();
    if (newest_ && now - taken_ < std::max(kFresh, 10 * cost_)) return newest_;
    // It failed while we waited: asking again would make us wait as long once more, and all behind us.
    if (failure_ && failed_ >= asked) return std::unexpected(*failure_);
    auto taken = take();
    if (!taken) {
      failure_ = taken.error();
      failed_ = steady_now();
      return std::unexpected(taken.error());
    }
    newest_ = std::make_shared<const T>(taken->rest());
    cost_ = taken->cost;
    taken_ = steady_now();
    return newest_;
  }
  // After a change by ourselves: the next get() asks.
  void outdate() {
    const std::lock_guard lock(mutex_);
    newest_.reset();
  }

 private:
  struct Taken {
    Administration::Later<T> rest;
    std::chrono::microseconds cost;
  };
  Result<Taken> take() {
    return loop_.ask<Taken>(
        [take = take_](std::function<void(Result<Taken>)> done) {
          const auto begun = steady_now();
          take([begun, done = std::move(done)](Result<Administration::Later<T>> rest) {
            if (!rest) return done(std::unexpected(rest.error()));
            const auto cost = steady_now() - begun;
            done(Taken{*std::move(rest), std::chrono::duration_cast<std::chrono::microseconds>(cost)});
          });
        },
        deadline_);
  }

  ControlLoop& loop_;
  const Take take_;
  const Milliseconds deadline_;
  Mutex mutex_;
  std::shared_ptr<const T> newest_;
  SteadyTime taken_;
  std::chrono::microseconds cost_{0};
  std::optional<Error> failure_;
  SteadyTime failed_;
};

}  // namespace pnfsrdma::console
