// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <any>
#include <expected>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "shared/nfs4/status.h"

namespace pnfsrdma::mds {

// What a handler returns when it has to wait. Never on the wire: the COMPOUND loop keeps the operation and
// runs it again from the top, checks included, when an answer has come.
inline constexpr nfs4::Status kSuspended = static_cast<nfs4::Status>(0xFFFFFFFF);

// How the handler of one operation waits without blocking the control loop. A handler asks its questions in a
// fixed order; a re-run gets the answers that have come, by that order, and suspends at the first one still
// missing:
//
//   TRY_ASSIGN(const brick::RunsResult runs,
//              suspension.ask<brick::RunsResult>([&](auto done) { bricks.alloc(arguments, std::move(done));
//              }));
//
// A handler whose checks fail on a re-run gives back what it was given but will not use (undo in ask()).
// Control loop only. One per COMPOUND; the loop calls begin_run() before each run of a handler and
// next_operation() behind its end.
class Suspension {
 public:
  template <typename T>
  using Done = std::function<void(T)>;

  // `resume` re-runs the operation; it is called at most once per suspension, never from inside ask().
  explicit Suspension(std::function<void()> resume) : shared_(std::make_shared<Shared>()) {
    shared_->resume = std::move(resume);
  }
  // The COMPOUND is gone (connection lost, client expelled): late answers are undone and resume nobody.
  ~Suspension() { abandon(); }
  Suspension(const Suspension&) = delete;
  Suspension& operator=(const Suspension&) = delete;

  // The answer to this question, or kSuspended. `start` is called once; it may call its Done at once or
  // later, from the control loop. `undo` is called with an answer that no run has taken by the operation's
  // end.
  template <typename T>
  std::expected<T, nfs4::Status> ask(std::function<void(Done<T>)> start,
                                     std::function<void(T)> undo = nullptr) {
    const size_t index = next_++;
    auto& answers = shared_->answers;
    if (index == answers.size()) {
      auto answer = std::make_shared<Answer>();
      if (undo) answer->undo = [undo](std::any& value) { undo(std::move(std::any_cast<T&>(value))); };
      answers.push_back(answer);
      shared_->starting = true;
      start([answer, shared = std::weak_ptr(shared_)](T value) {
        answer->value = std::move(value);
        deliver(answer, shared.lock());
      });
      shared_->starting = false;
    }
    const auto& answer = answers[index];
    if (!answer->value.has_value()) return std::unexpected(kSuspended);
    answer->taken = true;
    return std::any_cast<T>(answer->value);
  }

  void begin_run() {
    next_ = 0;
    for (auto& answer : shared_->answers) answer->taken = false;
  }
  void next_operation() { give_back(std::exchange(shared_->answers, {})); }

 private:
  struct Answer {
    std::any value;
    std::function<void(std::any&)> undo;
    bool taken = false;
    bool abandoned = false;
  };
  struct Shared {
    std::vector<std::shared_ptr<Answer>> answers;
    std::function<void()> resume;
    bool starting = false;
  };

  static void deliver(const std::shared_ptr<Answer>& answer, const std::shared_ptr<Shared>& shared) {
    if (answer->abandoned || !shared) {
      if (answer->undo) answer->undo(answer->value);
      return;
    }
    if (!shared->starting) shared->resume();
  }
  static void give_back(std::vector<std::shared_ptr<Answer>> answers) {
    for (auto& answer : answers) {
      answer->abandoned = true;
      if (answer->value.has_value() && !answer->taken && answer->undo) answer->undo(answer->value);
    }
  }
  void abandon() { give_back(std::exchange(shared_->answers, {})); }

  std::shared_ptr<Shared> shared_;
  size_t next_ = 0;
};

}  // namespace pnfsrdma::mds
