// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "shared/base/log.h"
#include "shared/base/sync.h"
#include "shared/initiator/session/record.h"
#include "shared/initiator/session/repetition.h"
#include "shared/initiator/session/state.h"

// The background thread: makes lost connections, sessions and clients anew, keeps the lease, and receives
// while no caller does. Callers only say what is lost (lose()) and wait.
namespace pnfsrdma::initiator {
namespace {

constexpr Milliseconds kConnectTimeout = std::chrono::seconds(3);
constexpr Milliseconds kReconnectFirst = std::chrono::milliseconds(20);
constexpr Milliseconds kReconnectMax = std::chrono::seconds(2);
// Who takes over is there at any moment.
constexpr Milliseconds kReconnectMaxWithOthers = std::chrono::milliseconds(250);

Session::Operations limits_question() {
  return {nfs4::PutRootFileHandleArguments{},
          nfs4::GetAttributesArguments{nfs4::Bitmap::of(nfs4::Attribute::kLeaseTime)}};
}

// BADXDR: it is no answer at all.
nfs4::Status sequence_status(const Bytes& record) {
  const Result<ByteSpan> bytes = results_of(record);
  if (!bytes) return nfs4::Status::kBadXdr;
  auto reader = nfs4::CompoundResultReader::open(*bytes);
  if (!reader) return nfs4::Status::kBadXdr;
  if (reader->left() == 0)
    return reader->status() == nfs4::Status::kOk ? nfs4::Status::kBadXdr : reader->status();
  const auto sequence = reader->result<nfs4::SequenceResponse>();
  return sequence ? nfs4::Status::kOk : sequence.error();
}

// A connection that was made and then lost may be a server that is just starting.
bool passes(int error) {
  return error == ECONNRESET || error == EPIPE;
}

}  // namespace

// `socket`: the connection on which it was noticed; a later one is not blamed.
void Session::State::lose(Lock&, const std::shared_ptr<SessionSocket>& socket, Damage damage,
                          std::string_view why) {
  const bool working = standing_ == Standing::kLive || standing_ == Standing::kReclaiming;
  if (stopping_ || aborted || socket != socket_ || socket == nullptr) return;
  if (!working && !(standing_ == Standing::kDisconnected && damage > damage_)) return;
  log_info("session", "lost server={} damage={} cause=\"{}\"", server_name, static_cast<int>(damage), why);
  damage_ = working ? damage : std::max(damage, damage_);
  standing_ = Standing::kDisconnected;
  // Wakes whoever receives on it.
  socket->shut_down();
  poller_.wake();
  changed_.notify_all();
}

Result<> Session::State::establish_first(CallbackHandler* callbacks, RecoveryHandler* recovery) {
  TRY(poller_.open());
  recovery_handler = recovery;
  backchannel.set_handler(callbacks);
  backchannel.start({.limit_slots =
                         [this](uint32_t highest) {
                           const std::lock_guard lock(mutex_);
                           slots_.limit_highest(highest);
                         },
                     .outstanding =
                         [this](uint32_t id, uint32_t sequence) {
                           const std::lock_guard lock(mutex_);
                           if (id >= slots_.all().size()) return false;
                           const Slot& slot = *slots_.all()[id];
                           return slot.phase != Slot::Phase::kFree && slot.sequence == sequence;
                         }});
  const SteadyTime until = now() + options.start_timeout;
  BackOff back_off(kReconnectFirst, kReconnectMax);
  for (;;) {
    const Result<> result = try_to_recover(Damage::kClient);
    if (result) return {};
    if (!passes(result.error().number()) || now() > until) return result;
    sleep_for(back_off.next());
  }
}

// Each of the server's hosts, from the one that answered last on. The error has what each of them said, and is one
// that passes if one of theirs does.
Result<> Session::State::try_to_recover(Damage damage) {
  if (options.other_hosts.empty()) return recover_at(0, damage);
  std::string causes;
  int number = 0;
  bool all_are_others = true;
  for (size_t tried = 0; tried <= options.other_hosts.size(); ++tried) {
    const size_t at = tried_at_;
    const Result<> result = recover_at(at, damage);
    if (result || aborted) return result;
    log_info("session", "host-tried server={} host={} cause=\"{}\"", server_name, host(at),
             result.error().to_string());
    causes += fmt::format("{}{}: {}", causes.empty() ? "" : "; ", host(at), result.error().to_string());
    if (!passes(number)) number = result.error().number();
    all_are_others &= result.error().number() == EREMCHG;
    next_host();
  }
  // It was made anew, at all of its addresses.
  if (all_are_others) establishment_.forget_server();
  return fail(number, causes);
}

const std::string& Session::State::host(size_t number) const {
  return number == 0 ? options.host : options.other_hosts[number - 1];
}

void Session::State::next_host() {
  tried_at_ = (tried_at_ + 1) % (1 + options.other_hosts.size());
}

Result<> Session::State::recover_at(size_t at, Damage damage) {
  TRY_ASSIGN(auto socket,
             SessionSocket::connect(options, host(at), kConnectTimeout, options.message_size + 4096,
                                    socket_counters_, destruction_));
  TRY_ASSIGN(const Recovered recovered, establishment_.recover(socket, damage, at != found_at_,
                                                               [&] { return ask_what_was_done(socket); }));
  found_at_ = at;
  if (!options.other_hosts.empty())
    log_info("session", "host-found server={} host={}", server_name, host(at));
  publish(socket, recovered);
  bool reclaiming = false;
  {
    Lock lock(mutex_);
    reclaiming = standing_ == Standing::kReclaiming;
  }
  if (reclaiming) return reclaim();
  post_limits();
  return {};
}

// Everybody may use the connection from here on, or, when state has to be reclaimed, the reclaim.
void Session::State::publish(const std::shared_ptr<SessionSocket>& socket, const Recovered& recovered) {
  const bool first = !socket_;
  bool layouts_void = recovered.new_client && !first;
  {
    Lock lock(mutex_);
    layouts_void |= reclaim_wanted_;
  }
  const bool renewed = recovered.new_session && !first && !layouts_void;
  if (layouts_void || renewed) ++generation;
  // Before anybody sends under the new session: nobody may use a layout of before that is void.
  if (RecoveryHandler* handler = recovery_handler) {
    if (layouts_void) handler->layouts_lost();
    if (renewed) handler->session_renewed();
  }
  if (recovered.new_session) {
    backchannel.reset(recovered.established.session_id, recovered.established.callback_slots);
  }
  std::vector<Slot*> to_send;
  {
    Lock lock(mutex_);
    if (!first) {
      ++statistics_.reconnects;
      statistics_.new_sessions += recovered.new_session;
      statistics_.new_clientids += recovered.new_client;
    }
    const Milliseconds lease = established_.lease;
    established_ = recovered.established;
    established_.lease = lease;
    socket_ = socket;
    host_ = host(found_at_);
    renewed_at_ = heard_at_ = now();
    silent_ = false;
    settle_slots(recovered.new_session, to_send);
    if (recovered.new_session) status_flags_ = 0;
    test_wanted_ |= renewed;
    // Stays until the reclaim is complete: a connection lost meanwhile does not end the need.
    reclaim_wanted_ |= recovered.new_client;
    standing_ = reclaim_wanted_ || renewal_wanted_ ? Standing::kReclaiming : Standing::kLive;
    poller_.watch(socket);
    poller_.start_timer(options.idle_delay);
    changed_.notify_all();
  }
  operations_max = recovered.established.operations_max;
  // READ's reply and WRITE's request have less than this around the data.
  constexpr uint32_t kAround = 4096;
  const uint32_t smaller =
      std::min(recovered.established.request_size_max, recovered.established.response_size_max);
  io_size_max = std::max<uint32_t>(smaller > kAround ? (smaller - kAround) & ~uint32_t{4095} : 0, 4096);
  // Exactly once: the same bytes, slot and number (RFC 8881, 2.10.6.1.3). Nobody touches a request that is
  // kSent.
  for (Slot* slot : to_send) {
    if (!socket->send(slot->request, options.silence())) break;  // the next reader notices
  }
}

// The session is gone, but a server may know what was done in it (RFC 8881, 2.10.6.5). A RENAME whose answer
// was lost with the server that did it would find no such name if it were built anew.
Result<> Session::State::ask_what_was_done(const std::shared_ptr<SessionSocket>& socket) {
  std::vector<Slot*> unanswered;
  {
    Lock lock(mutex_);
    for (const auto& slot : slots_.all()) {
      const bool sent = slot->phase == Slot::Phase::kSent && slot->session == slots_.session();
      if (sent && slot->cached) unanswered.push_back(slot.get());
    }
  }
  // Their requests are read-only, and their owners wait.
  for (Slot* slot : unanswered) {
    BackOff back_off(options.delay_first, options.delay_max);
    for (nfs4::Status status = nfs4::Status::kDelay; status == nfs4::Status::kDelay && !aborted;) {
      TRY_ASSIGN(Bytes record, establishment_.repeat(socket, slot->request, slot->xid));
      status = sequence_status(record);
      // The server is still at it, in a session that is only lost to us.
      if (status == nfs4::Status::kDelay) sleep_for(back_off.next());
      if (status != nfs4::Status::kOk) continue;
      Lock lock(mutex_);
      deliver_reply(*slot, std::move(record));
    }
  }
  return {};
}

// The calls that were under way: sent again on the same session, but for changes of data that were given up;
// built anew on another, where every slot is free: the reclaim must find one, whoever waits for it with an old
// one in hand.
void Session::State::settle_slots(bool new_session, std::vector<Slot*>& to_send) {
  if (new_session) slots_.reset(established_.slots);
  for (const auto& each : slots_.all()) {
    Slot& slot = *each;
    if (slot.phase != Slot::Phase::kSent) continue;
    if (slot.abandoned && slot.changes_data && !slot.voided) void_request(slot);
    stamp(slot);
    ++slot.transmissions;
    to_send.push_back(&slot);
  }
  for (const auto& each : slots_.retired()) {
    Slot& slot = *each;
    if (slot.phase != Slot::Phase::kSent) continue;
    if (slot.abandoned) {
      release(slot, false);
    } else {
      slot.phase = Slot::Phase::kSessionLost;
      if (slot.sleeping) slot.changed.notify_one();
    }
  }
  posts_changed_.notify_all();
}

// The clientid is new, or stateids are in doubt: RFC 8881, 8.4.2.
Result<> Session::State::reclaim() {
  if (RecoveryHandler* handler = recovery_handler) handler->reclaim();
  Call call;
  call.operations.emplace_back(nfs4::ReclaimCompleteArguments{});
  call.options = {.cache_reply = true, .recovery = true};
  call.began = now();
  // COMPLETE_ALREADY is as good; a server that wants none of it says so and is left alone.
  TRY(finish(call));
  if (RecoveryHandler* handler = recovery_handler) handler->reopen();
  TRY(ask_limits());
  Lock lock(mutex_);
  if (standing_ != Standing::kReclaiming)
    return fail(ECONNRESET, "the connection was lost while state was reclaimed");
  standing_ = Standing::kLive;
  reclaim_wanted_ = renewal_wanted_ = false;
  ++reclaims_;
  changed_.notify_all();
  appoint_poller();
  return {};
}

Result<> Session::State::ask_limits() {
  Call call;
  call.operations = limits_question();
  call.options.recovery = true;
  call.began = now();
  TRY_ASSIGN(const CompoundReply reply, finish(call));
  take_limits(reply);
  return {};
}

// The same behind a connection that needed no reclaim: it may be to a server that was started with another lease.
void Session::State::post_limits() {
  auto call = std::make_unique<Call>();
  call->operations = limits_question();
  call->completion = [this](const Result<CompoundReply>& reply) {
    if (reply) take_limits(*reply);
  };
  post(std::move(call));
}

void Session::State::take_limits(const CompoundReply& reply) {
  const auto* result = reply.result<nfs4::GetAttributesResponse>(1);
  if (result == nullptr || !result->attributes.lease_time) return;
  Lock lock(mutex_);
  established_.lease = std::chrono::seconds(std::clamp<uint32_t>(*result->attributes.lease_time, 1, 3600));
  lease_end = answered_at_ + established_.lease;
}

void Session::State::recover() {
  BackOff back_off(kReconnectFirst, options.other_hosts.empty() ? kReconnectMax : kReconnectMaxWithOthers);
  for (;;) {
    Damage damage;
    {
      Lock lock(mutex_);
      if (stopping_ || aborted || standing_ == Standing::kLive) return;
      damage = damage_;
      // It takes connections, perhaps, and says nothing.
      if (std::exchange(silent_, false)) next_host();
      standing_ = Standing::kRecovering;
      poller_.watch(nullptr);
      // A caller may still be on its way out of recv() on the old connection.
      while (polling_ && !stopping_) changed_.wait_for(lock, std::chrono::milliseconds(1));
    }
    const Result<> result = try_to_recover(damage);
    if (result) continue;
    {
      Lock lock(mutex_);
      log_warning("session", "recovery-failed server={} cause=\"{}\"", server_name,
                  result.error().to_string());
      // A session that was made on the way is as lost as the one before when its connection is.
      standing_ = Standing::kDisconnected;
      damage_ = std::max(damage, damage_);
      changed_.notify_all();
      const SteadyTime until = now() + back_off.next();
      while (now() < until && !stopping_ && !aborted) changed_.wait_until(lock, until);
    }
  }
}

// A third of the lease without a SEQUENCE: send one. Nobody waits for it.
void Session::State::keep_lease() {
  {
    Lock lock(mutex_);
    const SteadyTime time = now();
    const bool due = time - renewed_at_ >= established_.lease / 3 || is_in_doubt(time);
    if (standing_ != Standing::kLive || !due) return;
    renewed_at_ = time;
  }
  post(std::make_unique<Call>());
}

// Somebody waits, and nothing was heard: a host that lives answers a SEQUENCE at once.
bool Session::State::is_in_doubt(SteadyTime time) {
  if (options.other_hosts.empty()) return false;
  const SteadyTime then = time - silence() / 2;
  return renewed_at_ < then && heard_at_ < then &&
         std::ranges::any_of(
             slots_.all(),
             [&](const auto& slot) { return slot->phase == Slot::Phase::kSent && slot->sent_at < then; });
}

// For the answers that nobody waits for, the lease's among them: a host that vanished says nothing.
void Session::State::keep_patience() {
  Lock lock(mutex_);
  for (const auto& slot : slots_.all()) {
    if (slot->phase == Slot::Phase::kSent) check_patience(lock, *slot);
  }
}

// Receives what came while nobody else did; arms or disarms the watch on the socket.
void Session::State::keep_watch(Poller::Events events) {
  Lock lock(mutex_);
  if (standing_ != Standing::kLive) return;
  const bool quiet = now() - last_call_ >= options.idle_delay;
  if ((events.socket || (events.timer && quiet)) && !polling_) poll_once(lock, false);
  appoint_poller();
  if (standing_ != Standing::kLive || poller_.armed()) return;
  if (quiet && !polling_) {
    poller_.arm();
  } else if (events.timer || events.socket) {
    poller_.start_timer(options.idle_delay);
  }
}

void Session::State::run_background() {
  for (;;) {
    Milliseconds longest;
    {
      Lock lock(mutex_);
      if (stopping_ || aborted) return;
      longest = std::max<Milliseconds>(established_.lease / 6, std::chrono::milliseconds(100));
      if (!options.other_hosts.empty()) longest = std::min(longest, silence() / 4);
      if (standing_ == Standing::kDisconnected) longest = Milliseconds(0);
    }
    const Poller::Events events = poller_.wait(longest);
    recover();
    keep_watch(events);
    keep_lease();
    keep_patience();
    free_revoked();
  }
}

}  // namespace pnfsrdma::initiator
