// SPDX-License-Identifier: Apache-2.0
#include "server/mds/state/lease_keeper.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "server/mds/meta/read_then.h"
#include "shared/base/log.h"

namespace pnfsrdma::mds {

namespace {

// A loop that comes this late was kept from running; less is everyday business.
constexpr Milliseconds kStall(1000);
// Opens, locks and delegations of a client that go in one turn of the loop: about a millisecond.
constexpr size_t kStatesPerSlice = 256;
// Each range is in its file's index: so many cost as much as a state.
constexpr size_t kRangesAsAState = 16;
// Clients that are retired in one turn: each has up to 16 sessions, and every brick is told.
constexpr size_t kClientsPerSlice = 16;
// A client that was cut off when an earlier run of the daemon died may repeat its requests so long. Longer
// than any outage a lease outlives: what it costs is a record a slot.
constexpr Milliseconds kEarlierSessionsKept = std::chrono::minutes(10);
constexpr Milliseconds kNextSlice(10);

size_t cost_of(const LockState& lock) {
  return 1 + lock.ranges.all().size() / kRangesAsAState;
}

// The first of them, as many as may go in one turn.
std::vector<LockState*> slice_of(const LockTable::Set& all) {
  std::vector<LockState*> slice;
  size_t left = kStatesPerSlice;
  for (LockState* lock : all) {
    if (left == 0) break;
    slice.push_back(lock);
    left -= std::min(left, cost_of(*lock));
  }
  return slice;
}

}  // namespace

LeaseKeeper::LeaseKeeper(ClientTable& clients, SessionTable& sessions, OpenTable& opens, LockTable& locks,
                         Delegations& delegations, StateStore& store, LayoutConflicts& layouts,
                         Counters& counters)
    : clients_(clients),
      sessions_(sessions),
      opens_(opens),
      locks_(locks),
      delegations_(delegations),
      store_(store),
      layouts_(layouts),
      counters_(counters) {
  sessions_.set_on_destroy([this](const Session& session) {
    if (session.has_changed()) forget_session(session.id());
  });
}

void LeaseKeeper::forget_session(const SessionId& session) {
  read_then(
      store_.store(), lifetime_.token(), [this, session] { return store_.done().of_session(session); },
      [this](const Outcome<Batch>& records) {
        const auto forgotten = records ? store_.done().forget(*records) : std::unexpected(records.error());
        // What cannot be forgotten now goes some time after the next start.
        if (!forgotten)
          log_warning("mds", "session-records-kept status={}", nfs4::to_string(forgotten.error()));
      });
}

void LeaseKeeper::retire(const std::shared_ptr<Client>& client, std::function<void()> done) {
  clients_.remove(*client);
  sessions_.destroy_all_of(*client);
  // Fence first: as long as a brick lets the client in, nobody may be told that its share reservations are
  // gone.
  layouts_.on_client_gone(
      client->id, [this, client, done = std::move(done)] { drop({client->id, client->confirmed, done}); });
}

void LeaseKeeper::resume(const std::vector<ClientId>& expiring) {
  for (const ClientId client : expiring) {
    log_info("mds", "expiry-resumed client={:#x} opens={} locks={}", client,
             opens_.opens_of_client(client).size(), locks_.locks_of_client(client).size());
    layouts_.on_client_gone(client, [this, client] { drop({client, true, [] {}}); });
  }
}

void LeaseKeeper::retire_within(const std::shared_ptr<Client>& client, Milliseconds patience,
                                std::function<void()> done, std::function<void()> too_long) {
  const auto timer = std::make_shared<EventLoop::TimerId>(0);
  if (loop_ != nullptr) *timer = loop_->after(patience, std::move(too_long));
  retire(client, [this, timer, done = std::move(done)] {
    if (loop_ != nullptr) loop_->cancel(*timer);
    done();
  });
}

void LeaseKeeper::drop(Leaving leaving) {
  const LockTable::Set& locks = locks_.locks_of_client(leaving.client);
  size_t held = opens_.opens_of_client(leaving.client).size() +
                delegations_.table().of_client(leaving.client).size() + locks.size();
  if (held <= kStatesPerSlice)
    for (const LockState* lock : locks) held += cost_of(*lock) - 1;
  if (leaving.recorded && held > kStatesPerSlice) {
    // Unmarked and half erased it would come back at a restart and take for open what is not.
    if (const auto marked = store_.mark_expiring(leaving.client); !marked)
      keep_records(leaving, marked.error());
  }
  drop_slices(std::make_shared<Leaving>(std::move(leaving)));
}

// Those that are left come back at a restart, and expire again: harmless, if none of them is the record of a client
// that has a successor by then (StateStore::keep).
void LeaseKeeper::keep_records(Leaving& leaving, nfs4::Status why) {
  log_warning("mds", "client-record-kept client={:#x} status={}", leaving.client, nfs4::to_string(why));
  store_.keep(leaving.client);
  leaving.recorded = false;
}

void LeaseKeeper::drop_slices(const std::shared_ptr<Leaving>& leaving) {
  drop_slice(*leaving, [this, leaving](bool left) {
    if (!left) return leaving->done();
    if (loop_ == nullptr) return drop_slices(leaving);
    loop_->at_own_turn(lifetime_.guard([this, leaving] {
      const EventLoop::Step step(*loop_, "client-teardown", leaving->client);
      drop_slices(leaving);
    }));
  });
}

// `then` with whether some are left. Locks first: none is without its open.
void LeaseKeeper::drop_slice(Leaving& leaving, std::function<void(bool)> then) {
  const auto some = [](const auto& all, size_t most) {
    return std::vector(all.begin(),
                       std::next(all.begin(), static_cast<ptrdiff_t>(std::min(all.size(), most))));
  };
  const LockTable::Set& all_locks = locks_.locks_of_client(leaving.client);
  const OpenTable::Set& all_opens = opens_.opens_of_client(leaving.client);
  const DelegationTable::Set& all_delegations = delegations_.table().of_client(leaving.client);
  StateStore::Part part;
  part.locks = slice_of(all_locks);
  size_t left = kStatesPerSlice;
  for (const LockState* lock : part.locks) left -= std::min(left, cost_of(*lock));
  part.opens = some(all_opens, left);
  part.delegations = some(all_delegations, left - part.opens.size());
  const bool last = part.locks.size() == all_locks.size() && part.opens.size() == all_opens.size() &&
                    part.delegations.size() == all_delegations.size();
  if (leaving.recorded) {
    const auto erased = store_.erase(leaving.client, part, last);
    if (!erased) keep_records(leaving, erased.error());
  }
  locks_.remove(part.locks);
  for (DelegationState* delegation : part.delegations) delegations_.forget(*delegation);
  std::set<uint64_t> inodes;
  for (OpenState* open : part.opens) {
    inodes.insert(open->inode);
    opens_.remove(*open);
  }
  std::vector<uint64_t> closed(inodes.begin(), inodes.end());
  std::erase_if(closed, [this](uint64_t inode) { return opens_.is_open(inode); });
  layouts_.on_last_close(std::move(closed), lifetime_.guard([last, then = std::move(then)] { then(!last); }));
}

bool LeaseKeeper::has_many_locks(const StateidOther& open) const {
  const LockTable::Set& all = locks_.locks_of_open(open);
  return slice_of(all).size() < all.size();
}

void LeaseKeeper::release_locks(const StateidOther& open, std::function<void(Outcome<>)> done) {
  const LockTable::Set& all = locks_.locks_of_open(open);
  const std::vector<LockState*> slice = slice_of(all);
  if (slice.size() == all.size()) return done({});
  if (const auto erased = store_.erase(slice); !erased) return done(erased);
  locks_.remove(slice);
  in_own_turn([this, open, done = std::move(done)] { release_locks(open, done); });
}

void LeaseKeeper::in_own_turn(std::function<void()> work) {
  if (loop_ == nullptr) return work();
  loop_->at_own_turn(lifetime_.guard([this, work = std::move(work)] {
    const EventLoop::Step step(*loop_, "lock-release");
    work();
  }));
}

void LeaseKeeper::expire_due() {
  if (expiring_) return;
  while (expire_some()) {
    if (loop_ == nullptr) continue;
    expiring_ = true;
    return loop_->at_next_turn(lifetime_.guard([this] {
      const EventLoop::Step step(*loop_, "lease-expiry");
      expiring_ = false;
      expire_due();
    }));
  }
}

// Whether there may be more. Who has gone is not found again: retire() takes him out of the table first.
bool LeaseKeeper::expire_some() {
  const std::vector<std::shared_ptr<Client>> due = clients_.expired(kClientsPerSlice);
  for (const auto& client : due) {
    if (client->confirmed) {
      ++counters_.clients_expired;
      log_info("mds", "lease-expired client={:#x} opens={} locks={}", client->id,
               opens_.opens_of_client(client->id).size(), locks_.locks_of_client(client->id).size());
    }
    retire(client, [] {});
  }
  return due.size() == kClientsPerSlice;
}

// In slices: a slot of each session has a record, at most.
void LeaseKeeper::forget_earlier_sessions(const std::string& from) {
  const auto read = [this, from] {
    return store_.done().earlier([this](const SessionId& id) { return sessions_.find(id) != nullptr; }, from,
                                 kStatesPerSlice);
  };
  read_then(
      store_.store(), lifetime_.token(), read, [this, from](const Outcome<DoneRecords::Earlier>& earlier) {
        const EventLoop::Step step(*loop_, "earlier-sessions");
        const bool forgotten = earlier && store_.done().forget(earlier->dead);
        if (forgotten && earlier->next.empty()) return;
        // Refused: the store is full or stalls; later.
        loop_->after(forgotten ? kNextSlice : kEarlierSessionsKept,
                     [this, from = forgotten ? earlier->next : from] { forget_earlier_sessions(from); });
      });
}

void LeaseKeeper::start(EventLoop& loop, Milliseconds every) {
  if (loop_ == nullptr) loop.after(kEarlierSessionsKept, [this] { forget_earlier_sessions({}); });
  loop_ = &loop;
  loop.after(every, [this, &loop, every, due = loop.now() + every] {
    {
      const EventLoop::Step step(loop, "lease-expiry");
      look(std::chrono::duration_cast<Milliseconds>(loop.now() - due));
    }
    start(loop, every);
  });
}

void LeaseKeeper::look(Milliseconds late) {
  if (late >= kStall) {
    log_warning("mds", "stalled milliseconds={} leases were extended by that", late.count());
    clients_.lengthen_leases(late);
  }
  expire_due();
}

}  // namespace pnfsrdma::mds
