// SPDX-License-Identifier: Apache-2.0
#include "server/mds/state/delegations.h"

#include <algorithm>
#include <utility>

#include "shared/base/log.h"

namespace pnfsrdma::mds {

using nfs4::Status;
using nfs4::WhyNoDelegation;

namespace {

// The pause before a recall that was answered with an error, or not at all, is sent again.
constexpr Milliseconds kRecallAgain{100};
constexpr Milliseconds kRecallUnreachable{1000};
// The pause before a revocation that could not be recorded is tried again.
constexpr Milliseconds kRevokeAgain{1000};
// Clients that are asked for a delegation in one turn.
constexpr size_t kRecallsPerTurn = 64;
// Operations that go on in one turn when a file is delegated to nobody any more.
constexpr size_t kWakesPerTurn = 64;
// How often a client with too many delegations is asked to return some.
constexpr Milliseconds kAskForLessEvery{10'000};

}  // namespace

// When there are twice as many as the last time left: however fast they come, each costs no more than to look at two.
template <typename Key>
void Delegations::Until<Key>::drop_past(SteadyTime now) {
  if (entries.size() < many) return;
  std::erase_if(entries, [now](const auto& each) { return each.second <= now; });
  many = std::max(kMany, 2 * entries.size());
}

Delegations::Delegations(EventLoop& loop, DelegationTable& table, CallbackChannel& callbacks,
                         StateStore& store, Counters& counters, Milliseconds lease, Milliseconds contended)
    : loop_(loop),
      table_(table),
      callbacks_(callbacks),
      store_(store),
      counters_(counters),
      lease_(lease),
      contended_for_(contended) {}

Delegations::~Delegations() {
  lifetime_.end();
  for (const auto& [other, pending] : pending_) {
    loop_.cancel(pending.lease_timer);
    loop_.cancel(pending.retry_timer);
  }
}

Delegations::Hold Delegations::hold(uint64_t inode) {
  ++(*holds_)[inode];
  return {this, [holds = holds_, inode](const void*) {
            const auto held = holds->find(inode);
            if (--held->second == 0) holds->erase(held);
          }};
}

void Delegations::recall(uint64_t inode, ClientId except, Done done) {
  if (!table_.is_held_by_others(inode, except)) return done(Status::kOk);
  auto waiting = std::make_shared<Waiting>(Waiting{.except = except, .done = std::move(done)});
  waiting_.emplace(inode, waiting);
  waiting->timer = loop_.after(kDelegationPatience, lifetime_.guard([this, inode, waiting] {
    const auto [first, last] = waiting_.equal_range(inode);
    waiting_.erase(std::find_if(first, last, [&](const auto& each) { return each.second == waiting; }));
    std::exchange(waiting->done, nullptr)(Status::kDelay);
  }));
  demand_some(inode, except, {});
}

// A file may have thousands of them: so many holders are asked in one turn.
void Delegations::demand_some(uint64_t inode, ClientId except, const DelegationState& behind) {
  const EventLoop::Step step(loop_, "delegation-recalls");
  const DelegationTable::Set& held = table_.of_file(inode);
  DelegationState last;  // that has been asked
  last.client = behind.client;
  last.other = behind.other;
  for (size_t asked = 0; asked < kRecallsPerTurn; ++asked) {
    const auto next = held.upper_bound(&last);
    if (next == held.end()) return;
    last.client = (*next)->client;
    last.other = (*next)->other;
    if (last.client != except) demand(**next);
  }
  loop_.at_next_turn(lifetime_.guard([this, inode, except, last] { demand_some(inode, except, last); }));
}

void Delegations::demand(const DelegationState& state) {
  contended_.drop_past(loop_.now());
  contended_.entries[state.inode] = loop_.now() + contended_for_;
  const auto [pending, fresh] = pending_.try_emplace(state.other);
  if (!fresh) return;
  ++counters_.delegations_recalled;
  pending->second.lease_timer =
      loop_.after(lease_, lifetime_.guard([this, other = state.other] { expire(other); }));
  send(state.other);
}

// RFC 8881, 20.2
void Delegations::send(const StateidOther& other) {
  const DelegationState& state = *table_.find(other);
  nfs4::CallbackRecallArguments arguments;
  arguments.stateid = state.stateid();
  arguments.file_handle = state.handle;
  callbacks_.call(
      state.client, std::move(arguments),
      lifetime_.guard([this, other](const CallbackChannel::Answer& answer) { answered(other, answer); }));
}

void Delegations::answered(const StateidOther& other, const CallbackChannel::Answer& answer) {
  const auto pending = pending_.find(other);
  if (pending == pending_.end()) return;
  if (answer && nfs4::status_of(*answer) == Status::kOk) return;  // DELEGRETURN will follow
  pending->second.retry_timer =
      loop_.after(answer ? kRecallAgain : kRecallUnreachable, lifetime_.guard([this, other] {
        if (pending_.contains(other)) send(other);
      }));
}

void Delegations::expire(const StateidOther& other) {
  const auto pending = pending_.find(other);
  if (pending == pending_.end()) return;
  DelegationState& state = *table_.find(other);
  DelegationState revoked = state;
  revoked.revoked = true;
  // Before anybody may change the file: a restarted daemon must not take it for in force.
  if (const auto recorded = store_.put(revoked); !recorded) {
    pending->second.lease_timer =
        loop_.after(kRevokeAgain, lifetime_.guard([this, other] { expire(other); }));
    return;
  }
  log_warning("mds", "delegation-revoked client={:#x} inode={}", state.client, state.inode);
  ++counters_.delegations_revoked;
  end_recall(other);
  table_.revoke(state);
  settle(state.inode);
}

void Delegations::end_recall(const StateidOther& other) {
  const auto pending = pending_.find(other);
  if (pending == pending_.end()) return;
  loop_.cancel(pending->second.lease_timer);
  loop_.cancel(pending->second.retry_timer);
  pending_.erase(pending);
}

// The file has one delegation less.
void Delegations::settle(uint64_t inode) {
  const bool wakes = !waking_.empty();
  const auto [first, last] = waiting_.equal_range(inode);
  for (auto at = first; at != last;) {
    const bool waits = table_.is_held_by_others(inode, at->second->except);
    if (!waits) {
      loop_.cancel(at->second->timer);
      waking_.push_back(at->second);
    }
    at = waits ? std::next(at) : waiting_.erase(at);
  }
  if (unused_ && !table_.is_delegated(inode)) unused_(inode);
  // Last: what waits may start new recalls.
  if (!wakes) wake_some();
}

// Each is an operation that runs now. Until then nobody gets the file delegated: they hold it.
void Delegations::wake_some() {
  const EventLoop::Step step(loop_, "delegation-returns");
  for (size_t woken = 0; woken < kWakesPerTurn && !waking_.empty(); ++woken) {
    const auto waiting = std::move(waking_.front());
    waking_.pop_front();
    std::exchange(waiting->done, nullptr)(Status::kOk);
  }
  if (!waking_.empty()) loop_.at_own_turn(lifetime_.guard([this] { wake_some(); }));
}

bool Delegations::is_contended(uint64_t inode) {
  const auto found = contended_.entries.find(inode);
  return found != contended_.entries.end() && loop_.now() < found->second;
}

std::expected<nfs4::Stateid, WhyNoDelegation> Delegations::grant(const Request& request) {
  if (holds_->contains(request.inode) || is_contended(request.inode))
    return std::unexpected(WhyNoDelegation::kContention);
  return make(request);
}

std::expected<nfs4::Stateid, WhyNoDelegation> Delegations::reclaim(const Request& request) {
  return make(request);
}

std::expected<nfs4::Stateid, WhyNoDelegation> Delegations::make(const Request& request) {
  if (table_.is_held_by(request.inode, request.client)) return std::unexpected(WhyNoDelegation::kResource);
  if (table_.of_client(request.client).size() >= request.of_client_max || !table_.has_room(request.client)) {
    ask_for_less(request.client);
    return std::unexpected(WhyNoDelegation::kResource);
  }
  DelegationState made{
      .other = request.other, .client = request.client, .inode = request.inode, .handle = request.handle};
  if (!store_.put(made)) return std::unexpected(WhyNoDelegation::kResource);
  ++counters_.delegations_granted;
  return table_.add(std::move(made)).stateid();
}

// RFC 8881, 20.6: half of what it holds.
void Delegations::ask_for_less(ClientId client) {
  const SteadyTime now = loop_.now();
  asked_for_less_.drop_past(now);
  const auto [until, fresh] = asked_for_less_.entries.try_emplace(client, now + kAskForLessEvery);
  if (!fresh && now < until->second) return;
  until->second = now + kAskForLessEvery;
  nfs4::CallbackRecallAnyArguments arguments;
  arguments.objects_to_keep = static_cast<uint32_t>(table_.of_client(client).size() / 2);
  arguments.types.set(nfs4::kRecallAnyReadDelegation);
  callbacks_.call(client, std::move(arguments), [](const CallbackChannel::Answer&) {});
}

Outcome<> Delegations::give_back(DelegationState& state) {
  TRY(store_.erase(state));
  forget(state);
  return {};
}

void Delegations::forget(DelegationState& state) {
  const uint64_t inode = state.inode;
  const bool was_revoked = state.revoked;
  end_recall(state.other);
  table_.remove(state);
  if (!was_revoked) settle(inode);
}

}  // namespace pnfsrdma::mds
