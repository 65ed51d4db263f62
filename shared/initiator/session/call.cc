// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cerrno>

#include "shared/base/check.h"
#include "shared/base/log.h"
#include "shared/initiator/cancellation.h"
#include "shared/initiator/session/state.h"
#include "shared/rpc/message.h"
#include "shared/rpc/record.h"

// The way of a call: take a slot, encode, send, wait for the reply (receiving on the socket oneself when
// nobody else does), interpret it, and do all that again where the session has to be or the server asks for
// it.
namespace pnfsrdma::initiator {
bool Session::State::usable_by(const CallOptions& call) const {
  return standing_ == Standing::kLive || (standing_ == Standing::kReclaiming && call.recovery);
}

// Calls that have a slot of this session, from before a renewal of its opens, send and receive as ever.
bool Session::State::connected() const {
  return standing_ == Standing::kLive || standing_ == Standing::kReclaiming;
}

bool Session::State::replies_awaited() {
  return std::ranges::any_of(slots_.all(),
                             [](const auto& slot) { return slot->phase == Slot::Phase::kSent; });
}

// Why the call must not wait any longer, if so.
std::optional<Error> Session::State::stop_reason(Lock&, Call& call) {
  if (aborted || stopping_) return Error(ESHUTDOWN, "the mount is ending");
  if (call.options.interrupted != nullptr && *call.options.interrupted) return Error(EINTR, "interrupted");
  if (CancellationScope::cancelled()) return Error(EINTR, "whoever asked was killed");
  const SteadyTime time = now();
  if (time >= call.options.deadline) return Error(ETIMEDOUT, server_name + " did not answer in time");
  if (call.options.recovery && standing_ != Standing::kReclaiming) {
    return Error(ECONNRESET, "the connection was lost while state was reclaimed");
  }
  if (options.persistence != Persistence::kHard && time - call.began > options.soft_limit()) {
    // nfs(5): soft tells EIO, softerr ETIMEDOUT.
    const int number = options.persistence == Persistence::kSoft ? EIO : ETIMEDOUT;
    return Error(number, server_name + " does not answer");
  }
  return std::nullopt;
}

Result<Slot*> Session::State::acquire(Call& call, bool wait) {
  Lock lock(mutex_);
  for (;;) {
    if (auto reason = stop_reason(lock, call)) return std::unexpected(std::move(*reason));
    if (usable_by(call.options)) {
      if (Slot* slot = slots_.take(call.options.urgency == Urgency::kReserved || call.options.recovery)) {
        return slot;
      }
    }
    if (!wait) return nullptr;
    // While the background thread reclaims, nobody else receives the replies of calls that were given up or
    // posted, and they hold slots.
    if (call.options.recovery && !polling_ && replies_awaited()) {
      poll_once(lock, true);
      continue;
    }
    ++slot_waiters_;
    changed_.wait_until(lock, std::min(call.options.deadline, now() + SessionSocket::kSlice));
    --slot_waiters_;
  }
}

// Sends the call on a fresh slot. False: no slot is free and `wait` is false.
Result<bool> Session::State::send_new(Call& call, bool wait) {
  for (;;) {
    TRY_ASSIGN(Slot* const slot, acquire(call, wait));
    if (slot == nullptr) return false;
    encode(call, *slot);
    std::shared_ptr<SessionSocket> socket;
    {
      Lock lock(mutex_);
      if (slot->session != slots_.session()) {  // lost while we encoded
        release(*slot, false);
        continue;
      }
      if (slot->request.size() > established_.request_size_max + rpc::kMarkSize) {
        release(*slot, false);
        return fail(EMSGSIZE, "the request is longer than the session allows");
      }
      slot->phase = Slot::Phase::kSent;
      stamp(*slot);
      last_call_ = slot->sent_at;
      slot->transmissions = 1;
      call.slot = slot;
      // Not connected any more: recovery sends it, as it sends all that are kSent.
      if (connected()) socket = socket_;
    }
    if (socket) transmit(socket, slot->request);
    return true;
  }
}

void Session::State::transmit(const std::shared_ptr<SessionSocket>& socket, ByteSpan record) {
  // Disarmed first: else the reply could wake the background thread as well.
  poller_.disarm(options.idle_delay);
  if (auto sent = socket->send(record, options.silence()); !sent) {
    Lock lock(mutex_);
    if (sent.error().number() == ETIMEDOUT && socket == socket_) silent_ = true;
    lose(lock, socket, Damage::kConnection, sent.error().to_string());
  }
}

// Until the reply is here, the session is lost, or the call must stop; then the slot is no longer the call's.
Result<> Session::State::await_reply(Call& call) {
  Slot& slot = *call.slot;
  Lock lock(mutex_);
  while (slot.phase == Slot::Phase::kSent) {
    if (auto reason = stop_reason(lock, call)) {
      slot.abandoned = true;
      call.slot = nullptr;
      appoint_poller();
      return std::unexpected(std::move(*reason));
    }
    check_patience(lock, slot);
    if (!polling_ && connected()) {
      poll_once(lock, true);
    } else {
      slot.sleeping = true;
      slot.changed.wait_until(lock, std::min(call.options.deadline, now() + SessionSocket::kSlice));
      slot.sleeping = false;
    }
  }
  appoint_poller();
  return {};
}

// RFC 8881, 2.10.6.2: no retransmission on a connection that lives. So a server that is silent for too long
// costs it the connection, and recovery sends again. One that answers other calls may take its time for this one.
void Session::State::check_patience(Lock& lock, const Slot& slot) {
  const SteadyTime time = now();
  const bool silent = time - std::max(slot.sent_at, heard_at_) >= silence();
  if (!connected() || (!silent && time - slot.sent_at < options.timeout)) return;
  log_warning("session", "server-not-responding server={} transmissions={}", server_name, slot.transmissions);
  silent_ = silent;
  lose(lock, socket_, Damage::kConnection, "no reply in time");
}

// A lease is kept by who asks often enough, so that another host is found within it.
Milliseconds Session::State::silence() const {
  if (options.other_hosts.empty()) return options.silence();
  return std::min(options.silence(), std::max<Milliseconds>(established_.lease / 3, std::chrono::seconds(1)));
}

// Receives once and delivers what came. The lock is released meanwhile.
void Session::State::poll_once(Lock& lock, bool wait) {
  CHECK(!polling_);
  polling_ = true;
  const std::shared_ptr<SessionSocket> socket = socket_;
  lock.unlock();
  received_.clear();
  const Result<> result = socket->receive(wait, received_);
  lock.lock();
  polling_ = false;
  if (!received_.empty() && socket == socket_) heard_at_ = now();
  for (Bytes& record : received_) deliver(std::move(record));
  if (!result) lose(lock, socket, Damage::kConnection, result.error().to_string());
}

void Session::State::deliver(Bytes record) {
  const auto start = rpc::peek_message(record);
  if (!start) return;  // neither call nor reply: nobody's
  if (start->type == rpc::MessageType::kCall) {
    ++statistics_.callbacks;
    backchannel.push(socket_, std::move(record));
  } else if (Slot* slot = slots_.waiting_for(start->xid)) {
    deliver_reply(*slot, std::move(record));
  }
}

void Session::State::deliver_reply(Slot& slot, Bytes record) {
  slot.reply = std::move(record);
  slot.phase = Slot::Phase::kAnswered;
  if (slot.abandoned || slot.posted) {
    posts_changed_.notify_all();
  } else if (slot.sleeping) {
    slot.changed.notify_one();
  }
}

// Nobody polls while somebody sleeps for a reply: one of them has to take over.
void Session::State::appoint_poller() {
  if (polling_ || slots_.in_use() == 0) return;
  for (const auto& slot : slots_.all()) {
    if (slot->sleeping && slot->phase == Slot::Phase::kSent) {
      slot->changed.notify_one();
      return;
    }
  }
}

void Session::State::release(Slot& slot, bool sequence_used) {
  slots_.give_back(slot, sequence_used);
  if (slot_waiters_ > 0) changed_.notify_all();
}

// Sleeps between two attempts. False: the call must stop (send_new() will say why).
bool Session::State::pause(Call& call, Milliseconds duration) {
  Lock lock(mutex_);
  ++statistics_.delays;
  const SteadyTime until = std::min(now() + duration, call.options.deadline);
  while (now() < until) {
    if (stop_reason(lock, call)) return false;
    changed_.wait_until(lock, std::min(until, now() + SessionSocket::kSlice));
  }
  return true;
}

bool Session::State::begin(Call& call) {
  // An error shows again in finish().
  return send_new(call, false).value_or(false);
}

void Session::State::give_up(Call& call) {
  if (call.slot == nullptr) return;
  Lock lock(mutex_);
  Slot& slot = *std::exchange(call.slot, nullptr);
  if (slot.phase == Slot::Phase::kSent || slot.phase == Slot::Phase::kAnswered) {
    slot.abandoned = true;
    posts_changed_.notify_all();
  } else {
    release(slot, false);
  }
}

void Session::State::abort() {
  Lock lock(mutex_);
  aborted = true;
  if (socket_) socket_->shut_down();
  for (const auto& slot : slots_.all()) {
    if (slot->sleeping) slot->changed.notify_one();
  }
  changed_.notify_all();
  posts_changed_.notify_all();
  poller_.wake();
}

}  // namespace pnfsrdma::initiator
