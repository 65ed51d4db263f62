// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/brick/brick_owner.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <future>

#include "shared/rpc/universal_address.h"

namespace pnfsrdma::bench {
namespace {

constexpr std::chrono::seconds kPatience{30};
constexpr Milliseconds kPause{20};

Result<> must_be_ok(const char* what, brick::Status status) {
  if (status == brick::Status::kOk) return {};
  return fail(EIO,
              std::string(what) + ": the brick answers " + std::to_string(static_cast<uint32_t>(status)));
}

}  // namespace

BrickOwner::BrickOwner(const std::string& control) {
  client_ = std::make_unique<brick::BrickClient>(loop_, brick::BrickClientOptions{.address = control},
                                                 brick::BrickClient::Events{[] {}, [](const Error&) {}});
  client_->start();
  thread_ = std::thread([this] { loop_.run(); });
}

BrickOwner::~BrickOwner() {
  loop_.stop();
  thread_.join();
  client_.reset();
}

template <typename Answer>
Result<Answer> BrickOwner::ask(const char* what,
                               std::function<void(brick::Control&, brick::Control::Done<Answer>)> call) {
  std::promise<Result<Answer>> promise;
  loop_.post([&] { call(*client_, [&](Result<Answer> answer) { promise.set_value(std::move(answer)); }); });
  auto answer = promise.get_future().get();
  if (!answer) return std::unexpected(answer.error().in(what));
  return answer;
}

Result<std::unique_ptr<BrickOwner>> BrickOwner::claim(const std::string& control) {
  std::unique_ptr<BrickOwner> owner(new BrickOwner(control));
  TRY(owner->claim());
  return owner;
}

Result<> BrickOwner::claim() {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  for (epoch_ = 1;;) {
    auto answer = ask<brick::ClaimResult>(
        "claim", [&](auto& control, auto done) { control.claim({epoch_, "bench-brick"}, std::move(done)); });
    if (answer && answer->status == brick::Status::kOk) {
      identity_ = *std::move(answer);
      return {};
    }
    if (answer && answer->status == brick::Status::kStaleEpoch) {
      epoch_ = answer->claimed_epoch + 1;
    } else if (std::chrono::steady_clock::now() > end) {
      return answer ? must_be_ok("claim", answer->status) : std::unexpected(answer.error());
    } else {
      std::this_thread::sleep_for(kPause);  // not connected yet
    }
  }
}

Result<std::string> BrickOwner::address_for(const std::string& transport) const {
  const std::string wanted = transport == "verbs" ? "rdma" : "tcp";
  for (const brick::Path& path : identity_.paths) {
    if (path.netid != wanted && path.netid != wanted + "6") continue;
    TRY_ASSIGN(const auto address, rpc::from_universal_address(path.address));
    return address.to_string();
  }
  return fail(EHOSTUNREACH, "the brick has no path for " + transport);
}

Result<uint64_t> BrickOwner::alloc(uint64_t blocks) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  // What an earlier run left behind is free for us all the same.
  TRY_ASSIGN(const auto listed, ask<brick::ListResult>("list", [](auto& control, auto done) {
               control.list({0, brick::kRunsMax}, std::move(done));
             }));
  for (const auto& entry : listed.runs) {
    next_logical_ = std::max(next_logical_, entry.run.logical + entry.run.count * brick::kBlockSize);
  }
  for (;;) {
    TRY_ASSIGN(const auto answer, ask<brick::RunsResult>("alloc", [&](auto& control, auto done) {
                 control.alloc({epoch_, next_logical_, blocks, true}, std::move(done));
               }));
    if (answer.status == brick::Status::kTryLater && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(kPause);
      continue;
    }
    TRY(must_be_ok("alloc", answer.status));
    next_logical_ += blocks * brick::kBlockSize;
    return answer.runs.front().logical;
  }
}

Result<Ticket> BrickOwner::open_session(uint64_t client) {
  Ticket ticket;
  random_.fill(ticket);
  TRY_ASSIGN(const auto answer, ask<brick::StatusResult>("open_session", [&](auto& control, auto done) {
               control.open_session({epoch_, client, ticket}, std::move(done));
             }));
  TRY(must_be_ok("open_session", answer.status));
  return ticket;
}

Result<brick::Grant> BrickOwner::expose(uint64_t client, uint64_t logical, uint64_t length, bool writable) {
  TRY_ASSIGN(const auto answer, ask<brick::ExposeResult>("expose", [&](auto& control, auto done) {
               control.expose({epoch_, client, logical, length, writable}, std::move(done));
             }));
  TRY(must_be_ok("expose", answer.status));
  if (answer.grants.size() != 1 || answer.connection == 0)
    return fail(EPROTO, "expose: one live grant is expected");
  return answer.grants.front();
}

Result<> BrickOwner::withdraw(uint64_t client, uint64_t grant) {
  TRY_ASSIGN(const auto answer, ask<brick::StatusResult>("withdraw", [&](auto& control, auto done) {
               control.withdraw({epoch_, client, {{grant}}}, std::move(done));
             }));
  return must_be_ok("withdraw", answer.status);
}

Result<> BrickOwner::close_session(uint64_t client) {
  TRY_ASSIGN(const auto answer, ask<brick::StatusResult>("close_session", [&](auto& control, auto done) {
               control.close_session({epoch_, client}, std::move(done));
             }));
  return must_be_ok("close_session", answer.status);
}

Result<bool> BrickOwner::connected(uint64_t client) {
  TRY_ASSIGN(const auto answer, ask<brick::SessionsResult>("list_sessions", [](auto& control, auto done) {
               control.list_sessions(std::move(done));
             }));
  return std::ranges::any_of(answer.sessions, [&](const brick::SessionEntry& entry) {
    return entry.client == client && entry.connection != 0;
  });
}

}  // namespace pnfsrdma::bench
