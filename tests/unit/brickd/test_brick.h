// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <thread>

#include "server/brickd/brick.h"
#include "server/brickd/pool.h"
#include "shared/base/event_loop.h"
#include "shared/base/log.h"
#include "shared/base/random.h"
#include "shared/brick/control.h"
#include "shared/rdma/iwarp/transport.h"
#include "tests/doubles/rdma_memory/transport.h"

namespace pnfsrdma::brick {

inline constexpr uint64_t kBlock = kBlockSize;
inline constexpr uint64_t kEpoch = 1;
inline constexpr uint64_t kClient = 7;

inline xdr::FixedOpaque<kTicketSize> ticket_of(uint8_t number) {
  xdr::FixedOpaque<kTicketSize> ticket{};
  ticket.fill(static_cast<std::byte>(number));
  return ticket;
}

// A brick on a RAM pool with its loop in a thread of its own, reachable over iwarp on loopback or over the
// memory transport, and its control calls as if they were synchronous.
class TestBrick {
 public:
  using Transport = std::unique_ptr<rdma::Transport>;

  // `around`: what stands between the brick and its transport.
  explicit TestBrick(const std::string& transport, BrickOptions options = {},
                     std::unique_ptr<Pool> pool = nullptr, const BootId& boot = {},
                     const std::function<Transport(Transport)>& around = {}) {
    set_log_level(LogLevel::kOff);
    if (!pool) pool = std::move(*Pool::in_memory(8, random_));
    if (transport == "iwarp") {
      transport_ = rdma::iwarp::make_transport({}, random_);
    } else {
      transport_ = rdma::memory::make_transport(std::make_shared<rdma::memory::Network>(), random_);
    }
    if (around) transport_ = around(std::move(transport_));
    pool_ = pool.get();
    brick_ = std::make_unique<Brick>(loop_, std::move(pool), boot, random_, options);
    const auto bound = brick_->listen_data(*transport_, {.listen = "127.0.0.1:0", .netid = transport});
    EXPECT_TRUE(bound) << bound.error().to_string();
    address_ = *bound;
    thread_ = std::thread([this] { loop_.run(); });
  }
  ~TestBrick() {
    stop();
    set_log_level(LogLevel::kInfo);
  }
  // Ends the brick as a program's end does. Calls are not answered any more.
  void stop() {
    loop_.stop();
    if (thread_.joinable()) thread_.join();
    brick_.reset();
  }

  // The answer to one call of Control: call<RunsResult>(&Control::alloc, AllocArguments{…}).
  template <typename Arguments, typename Answer>
  Answer call(void (Control::*method)(const Arguments&, Control::Done<Answer>), const Arguments& arguments) {
    return ask<Answer>([&](auto done) { (brick_->control().*method)(arguments, done); });
  }
  template <typename Answer>
  Answer call(void (Control::*method)(Control::Done<Answer>)) {
    return ask<Answer>([&](auto done) { (brick_->control().*method)(done); });
  }

  ClaimResult claim(uint64_t epoch = kEpoch) { return call(&Control::claim, ClaimArguments{epoch, "test"}); }
  Status alloc(uint64_t logical, uint64_t count) {
    return call(&Control::alloc, AllocArguments{kEpoch, logical, count}).status;
  }
  Status open_session(uint64_t client = kClient, uint8_t ticket = 1) {
    return call(&Control::open_session, OpenSessionArguments{kEpoch, client, ticket_of(ticket)}).status;
  }
  ExposeResult expose(uint64_t logical, uint64_t length, bool writable = true, uint64_t client = kClient) {
    return call(&Control::expose, ExposeArguments{kEpoch, client, logical, length, writable});
  }
  Status withdraw(uint64_t grant, uint64_t client = kClient) {
    return call(&Control::withdraw, WithdrawArguments{kEpoch, client, {{grant}}}).status;
  }
  Status close_session(uint64_t client = kClient) {
    return call(&Control::close_session, CloseSessionArguments{kEpoch, client}).status;
  }

  // Has the loop do something to the brick.
  template <typename Task>
  void in_loop(Task task) {
    std::promise<void> done;
    loop_.post([&] {
      task(*brick_);
      done.set_value();
    });
    done.get_future().wait();
  }

  rdma::Transport& transport() { return *transport_; }
  const std::string& address() const { return address_; }
  // The pool's bytes at a logical address. While nothing changes the table.
  std::byte* memory(uint64_t logical) {
    return pool_->memory(pool_->table().resolve(logical, 1)->front()).data();
  }

 private:
  template <typename Answer, typename Start>
  Answer ask(Start start) {
    std::promise<Answer> promise;
    loop_.post([&] { start([&](Result<Answer> answer) { promise.set_value(*answer); }); });
    return promise.get_future().get();
  }

  SystemRandom random_;
  SystemClock clock_;
  EventLoop loop_{clock_};
  Transport transport_;
  std::unique_ptr<Brick> brick_;
  Pool* pool_ = nullptr;
  std::string address_;
  std::thread thread_;
};

}  // namespace pnfsrdma::brick
