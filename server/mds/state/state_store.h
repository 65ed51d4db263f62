// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <vector>

#include "server/mds/meta/namespace.h"
#include "server/mds/meta/records.h"
#include "server/mds/state/client.h"
#include "server/mds/state/delegation_table.h"
#include "server/mds/state/done_record.h"
#include "server/mds/state/lock_table.h"
#include "server/mds/state/open_state.h"

namespace pnfsrdma::mds {

// Confirmed clients, opens, byte-range locks and delegations as records in the metadata engine: written before
// the reply, without a sync, so that they survive the death of the daemon. One small commit each. Control loop
// only. Errors: DELAY, IO.
class StateStore {
 public:
  explicit StateStore(KeyValueStore& store) : store_(store), records_(store) {}

  // In one batch with it the clients that keep() knows are marked: none of them is there beside its successor.
  Outcome<> put(const Client& client);
  Outcome<> put(const OpenState& open);
  // As part of a larger batch.
  static void put(Batch& batch, const OpenState& open);
  Outcome<> put(const LockState& lock);
  Outcome<> put(const DelegationState& delegation);
  Outcome<> erase(const LockState& lock);
  Outcome<> erase(const DelegationState& delegation);
  // In one batch.
  Outcome<> erase(const std::vector<LockState*>& locks);
  // The open's record and those of its locks, in one batch.
  Outcome<> erase(const OpenState& open, const std::vector<LockState*>& locks);
  // A client that is taken apart in more than one batch is marked first: from then on it does not come back
  // at a restart, but what is left of it does, and conflicts until it is gone.
  Outcome<> mark_expiring(ClientId client);
  // The client is gone, and its record could not be erased or marked: the next put() of a client marks it. Until then a
  // restart brings it back, to expire again.
  void keep(ClientId client) { kept_.insert(client); }
  // Some of its records, in one batch; with the last of them its own, or its mark.
  struct Part {
    std::vector<OpenState*> opens;
    std::vector<LockState*> locks;
    std::vector<DelegationState*> delegations;
  };
  Outcome<> erase(ClientId client, const Part& part, bool last);

  struct Loaded {
    std::vector<Client> clients;
    std::vector<ClientId> expiring;  // their end had begun
    std::vector<OpenState> opens;    // of both only
    std::vector<LockState> locks;    // of these opens only
    std::vector<DelegationState> delegations;
  };
  // EUCLEAN for a record that cannot be read: the store is damaged or newer than this program.
  Result<Loaded> load();
  // After a reboot of the host: opens, locks and delegations go at once, clients when they have reclaimed or the grace
  // period is over.
  Result<> forget_opens();
  // From before that until the grace period is over: then the records are not all that clients may hold.
  Result<> note_grace();
  // It is over, and with it, in one batch, go those who were there when it began.
  Result<> end_grace(const std::vector<ClientId>& clients);
  Result<bool> in_grace();
  KeyValueStore& store() { return store_; }
  DoneRecords done() { return DoneRecords(store_); }

 private:
  Outcome<> commit(Batch& batch, CommitKind kind = CommitKind::kState);

  KeyValueStore& store_;
  Records records_;
  std::set<ClientId> kept_;  // see keep()
};

}  // namespace pnfsrdma::mds
