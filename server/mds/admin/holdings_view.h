// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "server/console/inventory.h"
#include "server/mds/admin/layout_module.h"
#include "server/mds/meta/namespace.h"
#include "server/mds/state/client_table.h"
#include "server/mds/state/delegation_table.h"
#include "server/mds/state/lock_table.h"
#include "server/mds/state/open_state.h"
#include "shared/base/clock.h"

namespace pnfsrdma::mds {

// Where the view looks; everything in the control loop.
struct HoldingsSources {
  const Clock& clock;
  ClientTable& clients;
  OpenTable& opens;
  const LockTable& locks;
  const DelegationTable& delegations;
  LayoutModule& layouts;
  Namespace& names;
};

// Clients by id with their sessions, and layouts by client and inode with their grants. About a microsecond
// per grant.
console::Holdings view_holdings(const HoldingsSources& sources);

}  // namespace pnfsrdma::mds
