// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "server/mds/state/client_table.h"
#include "server/mds/state/conflicts.h"
#include "server/mds/state/counters.h"
#include "server/mds/state/delegations.h"
#include "server/mds/state/lock_table.h"
#include "server/mds/state/open_state.h"
#include "server/mds/state/session_table.h"
#include "server/mds/state/state_store.h"
#include "shared/base/event_loop.h"
#include "shared/base/lifetime.h"

namespace pnfsrdma::mds {

// Takes clients apart: those whose lease has run out, that have rebooted, or that say they leave; and opens of whose
// locks there are too many for one turn. Control loop only.
class LeaseKeeper {
 public:
  LeaseKeeper(ClientTable& clients, SessionTable& sessions, OpenTable& opens, LockTable& locks,
              Delegations& delegations, StateStore& store, LayoutConflicts& layouts, Counters& counters);
  LeaseKeeper(const LeaseKeeper&) = delete;
  LeaseKeeper& operator=(const LeaseKeeper&) = delete;

  // From now on the client ID is stale and its sessions are bad. Its opens, locks and delegations stay in force
  // until no brick lets it in any more; then they and its records go, so many a turn that others are served in
  // between, and `done` is called (at once or later) with the last. A restart on the way goes on with what is
  // left.
  void retire(const std::shared_ptr<Client>& client, std::function<void()> done);
  // The same; `too_long` is called if that has not come about within `patience`, as when a brick is away.
  // Needs start(), without which patience has no end.
  void retire_within(const std::shared_ptr<Client>& client, Milliseconds patience, std::function<void()> done,
                     std::function<void()> too_long);
  // Goes on with clients whose end a restart has interrupted.
  void resume(const std::vector<ClientId>& expiring);
  // Whether the locks of an open are too many to go in the turn of its CLOSE.
  bool has_many_locks(const StateidOther& open) const;
  // Gives them up, so many a turn, until they are not; `done` is called with what the store said (DELAY, IO: some are
  // left). As long as there are some the open is there, too: whoever does not hear the end of it closes again.
  void release_locks(const StateidOther& open, std::function<void(Outcome<>)> done);
  // Calls `work` in a turn of its own; at once before start().
  void in_own_turn(std::function<void()> work);
  // Retires every client whose lease has run out, so many a turn. One that is heard of before its turn comes stays.
  void expire_due();
  // Does so every `every`, as long as the loop runs. Time in which it did not run (a stopped process, a
  // paused virtual machine, a disk that hangs) does not count: renewals that came meanwhile lie unread.
  void start(EventLoop& loop, Milliseconds every);

 private:
  // A client that nobody lets in any more, on its way out.
  struct Leaving {
    ClientId client = 0;
    bool recorded = false;  // its records are in the store, and go with what they stand for
    std::function<void()> done;
  };
  void look(Milliseconds late);
  bool expire_some();
  void drop(Leaving leaving);
  void drop_slices(const std::shared_ptr<Leaving>& leaving);
  void drop_slice(Leaving& leaving, std::function<void(bool)> then);
  void keep_records(Leaving& leaving, nfs4::Status why);
  void forget_session(const SessionId& session);
  void forget_earlier_sessions(const std::string& from);

  ClientTable& clients_;
  SessionTable& sessions_;
  OpenTable& opens_;
  LockTable& locks_;
  Delegations& delegations_;
  StateStore& store_;
  LayoutConflicts& layouts_;
  Counters& counters_;
  EventLoop* loop_ = nullptr;
  bool expiring_ = false;  // some are left for later turns
  Lifetime lifetime_;
};

}  // namespace pnfsrdma::mds
