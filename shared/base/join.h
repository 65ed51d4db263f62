// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <utility>

namespace pnfsrdma {

// What comes when several asynchronous parts have ended. For one thread.
//
//   Join join(done);
//   for (Device& device : devices) device.flush(join.part());
//   join.end();
//
// Until end() its maker counts as a part: those that end at once do not end the whole before all have begun. A
// part that is dropped instead of called never ends, so `done` is never called for work that was thrown away.
class Join {
  struct State {
    size_t left = 1;
    std::function<void()> done;
  };

 public:
  // Ends its part. To be called once.
  class Part {
   public:
    void operator()() const {
      if (--state_->left == 0) std::exchange(state_->done, nullptr)();
    }

   private:
    friend class Join;
    explicit Part(std::shared_ptr<State> state) : state_(std::move(state)) {}
    std::shared_ptr<State> state_;
  };

  explicit Join(std::function<void()> done) : own_(std::make_shared<State>(1, std::move(done))) {}

  Part part() const {
    ++own_.state_->left;
    return own_;
  }
  void end() const { own_(); }

 private:
  Part own_;
};

}  // namespace pnfsrdma
