// SPDX-License-Identifier: Apache-2.0
#include "library/blocks/owner_link.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "library/blocks/status_error.h"
#include "shared/base/signals_blocked.h"
#include "shared/rpc/dial.h"
#include "shared/xdr/codec.h"

namespace pnfsrdma::library::blocks {
namespace {

using BlocksStatus = brick::blocks::Status;

constexpr Milliseconds kConnectTimeout{5000};
constexpr Milliseconds kPauseShortest{50};
constexpr Milliseconds kPauseLongest{1000};
constexpr Milliseconds kAttachPause{20};
constexpr Milliseconds kSilence{10'000};
constexpr Milliseconds kCallTimeout{60'000};

// Waiting does not help.
bool is_final(const Error& error) {
  constexpr std::array kFinal{EACCES, ENOTSUP, EPROTO, ECONNREFUSED, EHOSTUNREACH, ENETUNREACH, ENOENT};
  return std::ranges::find(kFinal, error.number()) != kFinal.end();
}

// A call's answer on its way from the link's thread to the one that waits.
struct Answer {
  Guarded<std::optional<Result<Bytes>>> result;
  Condition came;
};

Milliseconds keep_alive_distance(const AttachResult& told) {
  return std::clamp(Milliseconds(told.lease_ms / 4), Milliseconds(100), Milliseconds(5000));
}

}  // namespace

Result<std::unique_ptr<OwnerLink>> OwnerLink::start(Target target, Listener& listener) {
  TRY_ASSIGN(auto tls, rpc_tls::Endpoint::open_key(rpc_tls::Role::kClient, target.key));
  const SignalsBlocked blocked;
  return std::unique_ptr<OwnerLink>(new OwnerLink(std::move(target), listener, std::move(tls)));
}

OwnerLink::OwnerLink(Target target, Listener& listener, std::shared_ptr<rpc_tls::Endpoint> tls)
    : target_(std::move(target)), listener_(listener), tls_(std::move(tls)), pause_(kPauseShortest) {
  loop_.post([this] { dial(); });
  thread_ = Thread([this] { loop_.run(); });
}

OwnerLink::~OwnerLink() {
  loop_.post([this] {
    ending_ = true;
    if (connection_) connection_->close();
    loop_.at_next_turn([this] { loop_.stop(); });
  });
  thread_.join();
}

Result<> OwnerLink::wait_for_first(SteadyTime deadline) {
  auto state = state_.lock();
  (void)state.wait_until(changed_, deadline, [](const State& now) {
    return now.attached != nullptr || (now.failed && is_final(now.error));
  });
  if (state->attached) return {};
  return std::unexpected(in_words(state->error));
}

Result<OwnerLink::Attached> OwnerLink::attached(SteadyTime deadline) {
  auto state = state_.lock();
  if (!state.wait_until(changed_, deadline, [](const State& now) { return now.up; }))
    return std::unexpected(in_words(state->error));
  return state->attached;
}

Error OwnerLink::in_words(const Error& error) const {
  return error.in("partition " + target_.key.identity + " at " + target_.address.to_string());
}

Result<Bytes> OwnerLink::call(Procedure procedure, Bytes arguments, SteadyTime deadline) {
  const auto answer = std::make_shared<Answer>();
  const auto left = std::chrono::duration_cast<Milliseconds>(deadline - steady_now());
  loop_.post([this, procedure, arguments = std::move(arguments), answer,
              timeout = std::max(left, Milliseconds(1))]() mutable {
    call_now(procedure, std::move(arguments), timeout, [answer](Result<Bytes> result) {
      answer->result.lock()->emplace(std::move(result));
      answer->came.notify_all();
    });
  });
  auto result = answer->result.lock();
  result.wait(answer->came, [](const auto& there) { return there.has_value(); });
  return std::move(**result);
}

void OwnerLink::call_later(Procedure procedure, Bytes arguments, Done done) {
  call_now(procedure, std::move(arguments), kCallTimeout, std::move(done));
}

void OwnerLink::disowned(uint64_t attachment) {
  auto state = state_.lock();
  if (!state->up || state->attached->attachment != attachment) return;
  state->up = false;
  loop_.post([this] {
    if (secured_) attach(0);
  });
}

// --- in the link's thread ---

void OwnerLink::dial() {
  if (ending_) return;
  rpc::dial(loop_, target_.address, kConnectTimeout,
            [this](Result<FileDescriptor> socket) { dialled(std::move(socket)); });
}

void OwnerLink::dialled(Result<FileDescriptor> socket) {
  if (ending_) return;
  if (!socket) return lost(socket.error());
  connection_ = rpc::Connection::start(loop_, *std::move(socket), {}, nullptr,
                                       [this](const rpc::ConnectionPointer& closed, const Error& reason) {
                                         if (closed == connection_) lost(reason);
                                       });
  connection_->start_tls(*tls_, "", brick::blocks::kProgram, brick::blocks::kVersion, kConnectTimeout,
                         [this, connection = connection_](const Result<>& outcome) {
                           if (connection == connection_) secured(outcome);
                         });
}

void OwnerLink::secured(const Result<>& outcome) {
  if (!outcome) {
    const int number = outcome.error().number();
    if (number == EACCES) return lost({EACCES, "another key, or another partition"});
    if (number == ENOTSUP) return lost({ENOTSUP, "nobody there serves the owner of a partition"});
    return lost(outcome.error());
  }
  secured_ = true;
  attach(known_ ? known_->attachment : 0);
}

void OwnerLink::attach(uint64_t again) {
  if (std::exchange(attaching_, true)) return;
  call_now(Procedure::kAttach, xdr::encode_to_bytes(brick::blocks::AttachArguments{again}), kSilence,
           [this, again, sent = loop_.now()](const Result<Bytes>& reply) {
             attaching_ = false;
             take_attached(reply, again, sent);
           });
}

void OwnerLink::take_attached(const Result<Bytes>& reply, uint64_t asked, SteadyTime sent) {
  if (!secured_) return;
  if (!reply) return lost(reply.error());
  auto told = xdr::decode_from<AttachResult>(*reply);
  if (!told) return lost({EPROTO, "the answer to attach"});
  switch (told->status) {
    case BlocksStatus::kOk:
      return publish(*std::move(told), sent);
    case BlocksStatus::kTryLater:
      loop_.after(kAttachPause, [this, asked] {
        if (secured_) attach(asked);
      });
      return;
    case BlocksStatus::kUnknown:
      return attach(0);
    default:
      return lost(to_error(told->status, "attach"));
  }
}

void OwnerLink::publish(AttachResult told, SteadyTime sent) {
  pause_ = kPauseShortest;
  const Attached before = known_;
  const uint64_t epoch = told.epoch;
  if (!before || before->attachment != told.attachment) {
    known_ = std::make_shared<const AttachResult>(std::move(told));
    // Silent for less than the lease, so it was there when the brick's process ended.
    const bool reclaims =
        before && epoch > known_epoch_ && loop_.now() - heard_ < Milliseconds(before->lease_ms);
    listener_.attached(known_, reclaims ? std::optional(known_epoch_) : std::nullopt);
    known_epoch_ = epoch;
  } else if (epoch != known_epoch_) {
    look_after_mappings(epoch);
  }
  heard_ = sent;
  {
    auto state = state_.lock();
    state->up = true;
    state->failed = false;
    state->attached = known_;
  }
  changed_.notify_all();
  ++keep_alive_turn_;
  keep_alive();
}

void OwnerLink::look_after_mappings(uint64_t epoch) {
  listener_.look_after_mappings(known_, [this, epoch, attachment = known_->attachment] {
    if (known_->attachment == attachment) known_epoch_ = std::max(known_epoch_, epoch);
  });
}

void OwnerLink::lost(const Error& reason) {
  secured_ = false;
  if (const auto connection = std::exchange(connection_, nullptr)) connection->close();
  {
    auto state = state_.lock();
    state->up = false;
    state->failed = true;
    state->error = reason;
  }
  changed_.notify_all();
  if (ending_) return;
  loop_.after(pause_, [this] { dial(); });
  pause_ = std::min(pause_ * 2, kPauseLongest);
}

// By what says whether the attachment is there still: the answer to a null call does not.
void OwnerLink::keep_alive() {
  loop_.after(keep_alive_distance(*known_), [this, turn = keep_alive_turn_] {
    if (turn == keep_alive_turn_ && secured_) attach(known_->attachment);
  });
}

void OwnerLink::call_now(Procedure procedure, Bytes arguments, Milliseconds timeout, Done done) {
  if (!secured_) return done(fail(ENOTCONN, "the brick is not connected"));
  connection_->call(brick::blocks::kProgram, brick::blocks::kVersion, static_cast<uint32_t>(procedure), {},
                    std::move(arguments), timeout, [done = std::move(done)](const Result<rpc::Reply>& reply) {
                      if (!reply) return done(std::unexpected(reply.error()));
                      done(Bytes(reply->results.begin(), reply->results.end()));
                    });
}

}  // namespace pnfsrdma::library::blocks
