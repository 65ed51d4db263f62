// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <any>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "server/mds/meta/namespace.h"
#include "server/mds/meta/request_reads.h"

namespace pnfsrdma::mds {

// How the handler of one operation waits without blocking the control loop. A handler asks its questions in a
// fixed order; a re-run gets the answers that have come, by that order, and suspends at the first one still
// missing:
//
//   TRY_ASSIGN(const brick::RunsResult runs,
//              suspension.ask<brick::RunsResult>([&](auto done) { bricks.alloc(arguments, std::move(done));
//              }));
//
// A handler whose checks fail on a re-run gives back what it was given but will not use (undo in ask()). A run
// that has missed a row of the store (request_reads.h) asks nothing new; to ask is an effect, so that reads
// behind it wait for the medium.
// Control loop only. One per COMPOUND; the loop calls begin_run() before each run of a handler and
// next_operation() behind its end.
class Suspension {
 public:
  template <typename T>
  using Done = std::function<void(T)>;

  // `resume` re-runs the operation; it is called at most once per suspension, never from inside ask().
  Suspension(RequestReads& reads, std::function<void()> resume)
      : reads_(reads), shared_(std::make_shared<Shared>()) {
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
      if (reads_.missed()) return std::unexpected(kSuspended);
      reads_.end_reading();
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

  // What `work` returns, which is done once: a re-run gets the same. Its reads are the request's; where it
  // misses a row, kSuspended, and it will be done again.
  template <typename T, typename Work>
  std::expected<T, nfs4::Status> once(Work work) {
    const size_t index = next_++;
    auto& answers = shared_->answers;
    if (index == answers.size()) {
      T value = work();
      if (reads_.missed()) return std::unexpected(kSuspended);
      auto answer = std::make_shared<Answer>();
      answer->value = std::move(value);
      answers.push_back(std::move(answer));
    }
    answers[index]->taken = true;
    return std::any_cast<T>(answers[index]->value);
  }

  // What a handler keeps of a run that is void, for the next one of the same operation: how far it came.
  template <typename T>
  void keep(T value) {
    kept_ = std::move(value);
  }
  template <typename T>
  std::optional<T> take_kept() {
    if (!kept_.has_value()) return std::nullopt;
    std::optional<T> kept = std::any_cast<T>(std::move(kept_));
    kept_.reset();
    return kept;
  }

  void begin_run() {
    next_ = 0;
    for (auto& answer : shared_->answers) answer->taken = false;
  }
  void next_operation() {
    give_back(std::exchange(shared_->answers, {}));
    kept_.reset();
  }

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

  RequestReads& reads_;
  std::shared_ptr<Shared> shared_;
  std::any kept_;
  size_t next_ = 0;
};

}  // namespace pnfsrdma::mds
