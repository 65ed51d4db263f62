// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>

#include "shared/base/event_loop.h"
#include "shared/brick/control.h"

namespace pnfsrdma::crash {

// The MDS's connection to the brick, in one process: passes calls to whichever brick lives now. When that
// dies, calls under way fail as they do on a socket. Control loop only.
class ControlLink final : public brick::Control {
 public:
  explicit ControlLink(EventLoop& loop) : loop_(loop) {}

  void attach(brick::Control& control) { control_ = &control; }
  void detach() {
    control_ = nullptr;
    for (auto& [number, fail] : std::exchange(pending_, {})) loop_.post(std::move(fail));
  }

  void identify(Done<brick::IdentifyResult> d) override {
    if (const auto done = track(std::move(d))) control_->identify(done);
  }
  void claim(const brick::ClaimArguments& a, Done<brick::ClaimResult> d) override {
    pass(&Control::claim, a, d);
  }
  void alloc(const brick::AllocArguments& a, Done<brick::RunsResult> d) override {
    pass(&Control::alloc, a, d);
  }
  void free(const brick::BlocksArguments& a, Done<brick::StatusResult> d) override {
    pass(&Control::free, a, d);
  }
  void map(const brick::MapArguments& a, Done<brick::StatusResult> d) override { pass(&Control::map, a, d); }
  void unmap(const brick::BlocksArguments& a, Done<brick::StatusResult> d) override {
    pass(&Control::unmap, a, d);
  }
  void list(const brick::ListArguments& a, Done<brick::ListResult> d) override { pass(&Control::list, a, d); }
  void survey(const brick::SurveyArguments& a, Done<brick::SurveyResult> d) override {
    pass(&Control::survey, a, d);
  }
  void erase(const brick::EraseArguments& a, Done<brick::StatusResult> d) override {
    pass(&Control::erase, a, d);
  }
  void open_session(const brick::OpenSessionArguments& a, Done<brick::StatusResult> d) override {
    pass(&Control::open_session, a, d);
  }
  void close_session(const brick::CloseSessionArguments& a, Done<brick::StatusResult> d) override {
    pass(&Control::close_session, a, d);
  }
  void list_sessions(Done<brick::SessionsResult> d) override {
    if (const auto done = track(std::move(d))) control_->list_sessions(done);
  }
  void expose(const brick::ExposeArguments& a, Done<brick::ExposeResult> d) override {
    pass(&Control::expose, a, d);
  }
  void withdraw(const brick::WithdrawArguments& a, Done<brick::StatusResult> d) override {
    pass(&Control::withdraw, a, d);
  }
  void list_grants(const brick::ListGrantsArguments& a, Done<brick::GrantsResult> d) override {
    pass(&Control::list_grants, a, d);
  }
  void persist(const brick::RangesArguments& a, Done<brick::PersistResult> d) override {
    pass(&Control::persist, a, d);
  }
  void zero(const brick::RangesArguments& a, Done<brick::StatusResult> d) override {
    pass(&Control::zero, a, d);
  }
  void copy(const brick::CopyArguments& a, Done<brick::StatusResult> d) override {
    pass(&Control::copy, a, d);
  }
  void statistics(Done<brick::StatisticsResult> d) override {
    if (const auto done = track(std::move(d))) control_->statistics(done);
  }
  void loop_turns(Done<brick::LoopTurnsResult> d) override {
    if (const auto done = track(std::move(d))) control_->loop_turns(done);
  }
  void session_traffic(Done<brick::SessionTrafficResult> d) override {
    if (const auto done = track(std::move(d))) control_->session_traffic(done);
  }

 private:
  template <typename Arguments, typename T>
  void pass(void (Control::*method)(const Arguments&, Done<T>), const Arguments& arguments, Done<T> done) {
    if (const auto tracked = track(std::move(done))) (control_->*method)(arguments, tracked);
  }

  // Null: nobody is there, and `done` will be told so.
  template <typename T>
  Done<T> track(Done<T> done) {
    if (control_ == nullptr) {
      loop_.post([done] { done(fail(ENOTCONN, "no brick")); });
      return nullptr;
    }
    const uint64_t number = next_++;
    pending_[number] = [done] { done(fail(ECONNRESET, "the brick died")); };
    return [this, alive = std::weak_ptr(alive_), number, done](Result<T> result) {
      if (!alive.expired() && pending_.erase(number) > 0) done(std::move(result));
    };
  }

  EventLoop& loop_;
  brick::Control* control_ = nullptr;
  uint64_t next_ = 0;
  std::map<uint64_t, std::function<void()>> pending_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace pnfsrdma::crash
