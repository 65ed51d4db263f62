// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "server/mds/meta/namespace.h"
#include "server/mds/meta/records.h"
#include "server/mds/state/client.h"
#include "server/mds/state/open_state.h"

namespace pnfsrdma::mds {

// Confirmed clients and opens as records in the metadata engine: written before the reply, without a sync, so
// that they survive the death of the daemon. One small commit each. Control loop only. Errors: DELAY, IO.
class StateStore {
 public:
  explicit StateStore(KeyValueStore& store) : store_(store), records_(store) {}

  Outcome<> put(const Client& client);
  Outcome<> put(const OpenState& open);
  Outcome<> erase(const OpenState& open);
  // The client's record and those of all its opens, in one batch.
  Outcome<> erase(const Client& client, const std::vector<OpenState*>& opens);

  struct Loaded {
    std::vector<Client> clients;
    std::vector<OpenState> opens;  // of these clients only
  };
  // EUCLEAN for a record that cannot be read: the store is damaged or newer than this program.
  Result<Loaded> load();
  // After a reboot of the host: opens go at once, clients when they have reclaimed or the grace period is
  // over.
  Result<> forget_opens() { return records_.clear(RecordKind::kOpen); }
  Result<> forget_client(ClientId client);

 private:
  KeyValueStore& store_;
  Records records_;
};

}  // namespace pnfsrdma::mds
