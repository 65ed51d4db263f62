// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <functional>
#include <memory>
#include <optional>

#include "server/console/http_limits.h"
#include "shared/base/event_loop.h"
#include "shared/base/guarded.h"
#include "shared/base/result.h"
#include "shared/base/sync.h"

namespace pnfsrdma::console {

// How the console's threads ask the control loop: a message there, and a wait for the answer with a deadline.
// The loop itself never waits for them. Thread-safe.
class ControlLoop {
 public:
  explicit ControlLoop(EventLoop& loop) : loop_(loop) {}
  ControlLoop(const ControlLoop&) = delete;
  ControlLoop& operator=(const ControlLoop&) = delete;

  // Runs `start` in the loop with a `done` that may be called at once or later, and waits for it. EAGAIN when
  // the loop has not begun with it by the deadline, or the server stops: then it never will. ETIMEDOUT when
  // it has begun: it goes on, and nobody hears how it ends.
  template <typename T>
  Result<T> ask(std::function<void(std::function<void(Result<T>)> done)> start,
                Milliseconds deadline = kLoopDeadline);
  // For what the loop answers on the spot.
  template <typename T>
  Result<T> call(std::function<T()> function, Milliseconds deadline = kLoopDeadline) {
    return ask<T>([function = std::move(function)](std::function<void(Result<T>)> done) { done(function()); },
                  deadline);
  }

  // The loop will not run any more: whoever waits is told so.
  void stop() { stopping_ = true; }
  bool stopping() const { return stopping_; }

 private:
  enum class Stage { kPosted, kBegun, kAbandoned };
  template <typename T>
  struct Question {
    struct State {
      Stage stage = Stage::kPosted;
      std::optional<Result<T>> answer;
    };
    Guarded<State> state;
    Condition answered;
  };

  EventLoop& loop_;
  std::atomic<bool> stopping_ = false;
};

template <typename T>
Result<T> ControlLoop::ask(std::function<void(std::function<void(Result<T>)> done)> start,
                           Milliseconds deadline) {
  constexpr Milliseconds kLook{50};  // how often it looks whether the server stops
  if (stopping_) return fail(EAGAIN, "the server is stopping");
  auto question = std::make_shared<Question<T>>();
  loop_.post([question, start = std::move(start)] {
    {
      auto state = question->state.lock();
      if (state->stage == Stage::kAbandoned) return;
      state->stage = Stage::kBegun;
    }
    start([question](Result<T> answer) {
      auto state = question->state.lock();
      state->answer = std::move(answer);
      question->answered.notify_one();
    });
  });
  const auto until = steady_now() + deadline;
  auto state = question->state.lock();
  while (!stopping_ && steady_now() < until) {
    const auto look = std::min(until, steady_now() + kLook);
    if (state.wait_until(question->answered, look, [](const auto& now) { return now.answer.has_value(); }))
      return std::move(*state->answer);
  }
  if (state->stage == Stage::kBegun)
    return fail(ETIMEDOUT, "no answer yet: the change may still be carried out, check later how it ended");
  state->stage = Stage::kAbandoned;
  return fail(EAGAIN, stopping_ ? "the server is stopping" : "the server is too busy: nothing was changed");
}

}  // namespace pnfsrdma::console
