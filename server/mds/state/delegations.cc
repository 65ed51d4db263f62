// SPDX-License-Identifier: Apache-2.0
#include "server/mds/state/delegations.h"

#include <algorithm>
#include <iterator>
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
// Delegations that are judged in one turn.
constexpr size_t kJudgedPerTurn = 512;
// Operations that go on in one turn when a file is delegated to nobody any more.
constexpr size_t kWakesPerTurn = 64;
// How often a client with too many delegations is asked to return some.
constexpr Milliseconds kAskForLessEvery{10'000};

std::optional<WallTime> time_said(const std::optional<nfs4::Time>& said) {
  constexpr uint32_t kNanosecondsPerSecond = 1'000'000'000;
  if (!said || said->nanoseconds >= kNanosecondsPerSecond) return std::nullopt;
  return said->to_wall_time();
}

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
  for (const auto& [other, asking] : asking_) loop_.cancel(asking->timer);
}

Delegations::Hold Delegations::hold(uint64_t inode, ClientId client, FileAct act) {
  const size_t change = act == FileAct::kChange ? 1 : 0;
  Holders& of_file = (*holds_)[inode];
  of_file.changes += change;
  ++of_file.holds[client];
  return {this, [holds = holds_, inode, client, change](const void*) {
            const auto held = holds->find(inode);
            held->second.changes -= change;
            const auto own = held->second.holds.find(client);
            if (--own->second == 0) held->second.holds.erase(own);
            if (held->second.holds.empty()) holds->erase(held);
          }};
}

bool Delegations::is_held_against(const Request& request) const {
  const auto held = holds_->find(request.inode);
  if (held == holds_->end()) return false;
  if (request.kind == DelegationKind::kRead) return held->second.changes > 0;
  return held->second.holds.size() > 1 || !held->second.holds.contains(request.client);
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

struct Delegations::Sweep {
  const Judge judge;
  std::vector<ClientId> holders;  // the last of them is looked at
  StateidOther last{};            // up to this one of his
};

void Delegations::recall_by_handle(Judge judge) {
  sweep_some(
      std::make_shared<Sweep>(Sweep{.judge = std::move(judge), .holders = table_.holders(), .last = {}}));
}

void Delegations::sweep_some(const std::shared_ptr<Sweep>& sweep) {
  const EventLoop::Step step(loop_, "delegation-sweep");
  for (size_t judged = 0, recalled = 0; !sweep->holders.empty();) {
    if (judged == kJudgedPerTurn || recalled == kRecallsPerTurn)
      return loop_.at_next_turn(lifetime_.guard([this, sweep] { sweep_some(sweep); }));
    DelegationState last;
    last.client = sweep->holders.back();
    last.other = sweep->last;
    const DelegationTable::Set& held = table_.of_client(last.client);
    const auto next = held.upper_bound(&last);
    if (next == held.end()) {
      sweep->holders.pop_back();
      sweep->last = {};
      continue;
    }
    const DelegationState& state = **next;
    sweep->last = state.other;
    ++judged;
    const Verdict verdict = state.revoked ? Verdict::kStays : sweep->judge(state.handle);
    if (verdict == Verdict::kStays) continue;
    ++recalled;
    demand(state, verdict == Verdict::kGone);
  }
}

void Delegations::demand(const DelegationState& state, bool is_gone) {
  contended_.drop_past(loop_.now());
  contended_.entries[state.inode] = loop_.now() + contended_for_;
  const auto [pending, fresh] = pending_.try_emplace(state.other);
  if (!fresh && (!is_gone || pending->second.is_gone)) return;
  pending->second.is_gone = is_gone;
  if (!fresh) {
    // It may have been answered, and the return that was to follow cannot come.
    loop_.cancel(pending->second.retry_timer);
    return send(state.other);
  }
  ++counters_.delegations_recalled;
  pending->second.until = loop_.now() + lease_;
  pending->second.bound = loop_.now() + lease_ * kLeasesToReturn;
  pending->second.lease_timer =
      loop_.after(lease_, lifetime_.guard([this, other = state.other] { expire(other); }));
  send(state.other);
}

void Delegations::at_work(ClientId client, uint64_t inode) {
  if (pending_.empty()) return;
  const DelegationState* held = table_.write_delegation(inode);
  if (held == nullptr || held->client != client) return;
  const auto pending = pending_.find(held->other);
  if (pending == pending_.end()) return;
  pending->second.until = std::min(loop_.now() + lease_, pending->second.bound);
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
  if (answer) silent_.erase(table_.find(other)->client);
  const bool is_taken = answer && nfs4::status_of(*answer) == Status::kOk;
  // DELEGRETURN will follow; of one that is gone this was the return.
  if (is_taken && (!pending->second.is_gone || give_back(*table_.find(other)))) return;
  pending->second.retry_timer =
      loop_.after(answer ? kRecallAgain : kRecallUnreachable, lifetime_.guard([this, other] {
        if (pending_.contains(other)) send(other);
      }));
}

void Delegations::ask_holder(uint64_t inode, TakeTold done) {
  const DelegationState* held = table_.write_delegation(inode);
  if (held == nullptr || silent_.contains(held->client)) return done(std::nullopt);
  const auto under_way = asking_.find(held->other);
  if (under_way == asking_.end()) return ask(*held, {std::move(done)});
  under_way->second->next.push_back(std::move(done));
}

// RFC 8881, 20.1
void Delegations::ask(const DelegationState& state, std::vector<TakeTold> askers) {
  const auto asking = std::make_shared<Asking>();
  asking->now = std::move(askers);
  asking_[state.other] = asking;
  const auto tired = [this, other = state.other, client = state.client, asking] {
    silent_.insert(client);
    told(other, asking, std::nullopt);
  };
  asking->timer = loop_.after(kDelegationPatience, lifetime_.guard(tired));
  nfs4::CallbackGetAttributesArguments arguments;
  arguments.file_handle = state.handle;
  arguments.requested = nfs4::Bitmap::of(nfs4::Attribute::kChange, nfs4::Attribute::kSize);
  if (state.keeps_times) {
    arguments.requested.set(nfs4::Attribute::kTimeDelegatedAccess);
    arguments.requested.set(nfs4::Attribute::kTimeDelegatedModify);
  }
  const auto taken = [this, other = state.other, client = state.client, asking,
                      known = state.change_told](const CallbackChannel::Answer& answer) {
    const auto* said = answer ? std::get_if<nfs4::CallbackGetAttributesResponse>(&*answer) : nullptr;
    if (answer) silent_.erase(client);
    if (said == nullptr || !said->ok()) return told(other, asking, std::nullopt);
    const nfs4::Attributes& attributes = said->result.attributes;
    if (!attributes.size || !attributes.change) return told(other, asking, std::nullopt);
    told(other, asking,
         Told{.delegation = other,
              .size = *attributes.size,
              .is_changed = attributes.change != known,
              .times = {.access = time_said(attributes.time_delegated_access),
                        .modify = time_said(attributes.time_delegated_modify)}});
  };
  callbacks_.call(state.client, std::move(arguments), kDelegationPatience, lifetime_.guard(taken));
}

void Delegations::told(const StateidOther& other, const AskingPointer& asking,
                       const std::optional<Told>& answer) {
  const auto under_way = asking_.find(other);
  if (under_way == asking_.end() || under_way->second != asking) return;
  loop_.cancel(asking->timer);
  asking_.erase(under_way);
  std::vector<Continuation> ready;
  for (const TakeTold& take : asking->now) ready.emplace_back([take, answer] { take(answer); });
  const DelegationState* held = table_.find(other);
  // Who does not answer is not asked again: whoever waits recalls it.
  const bool asks_again = answer && held != nullptr && !held->revoked;
  if (asks_again && !asking->next.empty()) ask(*held, std::move(asking->next));
  if (!asks_again)
    for (const TakeTold& take : asking->next) ready.emplace_back([take] { take(std::nullopt); });
  wake(std::move(ready));
}

void Delegations::shown(const StateidOther& delegation, uint64_t size, uint64_t change) {
  if (DelegationState* held = table_.find(delegation)) held->shown = {.size = size, .change = change};
}

void Delegations::expire(const StateidOther& other) {
  const auto pending = pending_.find(other);
  if (pending == pending_.end()) return;
  if (const auto left = std::chrono::ceil<Milliseconds>(pending->second.until - loop_.now());
      left > Milliseconds(0)) {
    pending->second.lease_timer = loop_.after(left, lifetime_.guard([this, other] { expire(other); }));
    return;
  }
  const DelegationState& state = *table_.find(other);
  if (state.kind != DelegationKind::kWrite) return revoke(other);
  fence_(state.client, state.inode, lifetime_.guard([this, other](std::shared_ptr<const void> fence) {
    const auto revoked = pending_.find(other);
    if (revoked == pending_.end()) return;
    revoked->second.fence = std::move(fence);
    revoke(other);
  }));
}

// Nothing is left to do where it has been returned meanwhile.
void Delegations::revoke(const StateidOther& other) {
  const auto pending = pending_.find(other);
  if (pending == pending_.end()) return;
  DelegationState& state = *table_.find(other);
  DelegationState revoked = state;
  revoked.revoked = true;
  // Before anybody may change the file: a restarted daemon must not take it for in force.
  if (const auto recorded = store_.put(revoked); !recorded) {
    pending->second.lease_timer =
        loop_.after(kRevokeAgain, lifetime_.guard([this, other] { revoke(other); }));
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
  std::vector<Continuation> ready;
  const auto [first, last] = waiting_.equal_range(inode);
  for (auto at = first; at != last;) {
    const bool waits = table_.is_held_by_others(inode, at->second->except);
    if (!waits) {
      loop_.cancel(at->second->timer);
      ready.emplace_back([waiting = at->second] { std::exchange(waiting->done, nullptr)(Status::kOk); });
    }
    at = waits ? std::next(at) : waiting_.erase(at);
  }
  if (unused_ && !table_.is_delegated(inode)) unused_(inode);
  // Last: what waits may start new recalls.
  wake(std::move(ready));
}

// Who goes on may end what others wait for: they go on behind him, not inside.
void Delegations::wake(std::vector<Continuation> waiting) {
  const bool wakes = in_waking_ || !waking_.empty();
  std::ranges::move(waiting, std::back_inserter(waking_));
  if (!wakes) wake_some();
}

// Each is an operation that runs now. Until then nobody gets the file delegated: they hold it.
void Delegations::wake_some() {
  const EventLoop::Step step(loop_, "delegation-returns");
  in_waking_ = true;
  for (size_t woken = 0; woken < kWakesPerTurn && !waking_.empty(); ++woken) {
    const auto waiting = std::move(waking_.front());
    waking_.pop_front();
    waiting();
  }
  in_waking_ = false;
  if (!waking_.empty()) loop_.at_own_turn(lifetime_.guard([this] { wake_some(); }));
}

bool Delegations::is_contended(uint64_t inode) {
  const auto found = contended_.entries.find(inode);
  return found != contended_.entries.end() && loop_.now() < found->second;
}

std::expected<nfs4::Stateid, WhyNoDelegation> Delegations::grant(const Request& request) {
  if (is_held_against(request) || is_contended(request.inode))
    return std::unexpected(WhyNoDelegation::kContention);
  return make(request);
}

std::expected<nfs4::Stateid, WhyNoDelegation> Delegations::reclaim(const Request& request) {
  return make(request);
}

std::expected<nfs4::Stateid, WhyNoDelegation> Delegations::make(const Request& request) {
  if (table_.find(request.inode, request.client) != nullptr)
    return std::unexpected(WhyNoDelegation::kResource);
  const FileAct act = request.kind == DelegationKind::kWrite ? FileAct::kChange : FileAct::kUse;
  if (table_.conflicts(request.inode, request.client, act))
    return std::unexpected(WhyNoDelegation::kContention);
  if (table_.of_client(request.client).size() >= request.of_client_max || !table_.has_room(request.client)) {
    ask_for_less(request.client);
    return std::unexpected(WhyNoDelegation::kResource);
  }
  DelegationState made{.other = request.other,
                       .client = request.client,
                       .inode = request.inode,
                       .kind = request.kind,
                       .handle = request.handle,
                       .change_told = request.change,
                       .keeps_times = request.mtime.has_value(),
                       .mtime_then = request.mtime};
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
  arguments.types.set(nfs4::kRecallAnyWriteDelegation);
  arguments.types.set(nfs4::kRecallAnyDirectoryDelegation);
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
  const ClientId client = state.client;
  end_recall(state.other);
  table_.remove(state);
  if (table_.of_client(client).empty()) silent_.erase(client);
  if (!was_revoked) settle(inode);
}

}  // namespace pnfsrdma::mds
