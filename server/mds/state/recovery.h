// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include "server/mds/meta/boot_record.h"
#include "server/mds/state/client_table.h"
#include "server/mds/state/delegation_table.h"
#include "server/mds/state/grace.h"
#include "server/mds/state/lock_table.h"
#include "server/mds/state/open_state.h"
#include "server/mds/state/state_store.h"

namespace pnfsrdma::mds {

// What a start of the daemon does with the records of the last one. On the same boot of the host clients,
// opens, locks and delegations are kept as they were: clients see BADSESSION, make a new session and go on;
// until then they have the lease that they were told, if it was longer than ours. After a reboot, and when the
// grace period behind the last one was not over (who had not reclaimed yet would be taken for one without
// opens), state is gone as the RFC says (8881, 8.4.2): opens, locks and delegations are forgotten, and the
// clients on record may reclaim for `grace_longest`. Everything given must live as long as the grace period.
// Returns the clients whose end had begun: LeaseKeeper::resume() goes on with it.
Result<std::vector<ClientId>> recover_state(const BootRecord& boot, StateStore& store, ClientTable& clients,
                                            OpenTable& opens, LockTable& locks, DelegationTable& delegations,
                                            GracePeriod& grace, Milliseconds grace_longest,
                                            std::function<void()> grace_ended = nullptr);

}  // namespace pnfsrdma::mds
