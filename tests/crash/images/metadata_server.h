// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "server/mds/admin/data_plane.h"
#include "server/mds/meta/boot_record.h"
#include "server/mds/meta/brick_list.h"
#include "server/mds/meta/namespace.h"
#include "server/mds/ops/compound.h"
#include "server/mds/ops/handle_keys.h"
#include "server/mds/ops/layout_callbacks.h"
#include "server/mds/ops/services.h"
#include "server/mds/ops/user_groups.h"
#include "server/mds/state/callback_channel.h"
#include "server/mds/state/client_table.h"
#include "server/mds/state/counters.h"
#include "server/mds/state/delegations.h"
#include "server/mds/state/grace.h"
#include "server/mds/state/lease_keeper.h"
#include "server/mds/state/lock_waiters.h"
#include "server/mds/state/server_limits.h"
#include "server/mds/state/session_table.h"
#include "server/mds/state/state_store.h"
#include "shared/rdma/transport.h"
#include "tests/crash/images/control_link.h"
#include "tests/unit/mds/layout/brick_plug.h"

namespace pnfsrdma::crash {

// One run of the metadata server: its parts as main() builds them, without sockets. Its destructor is its
// death: nothing is said to the store or the brick.
class MetadataServer {
 public:
  struct Host {
    EventLoop& loop;
    const Clock& clock;
    Random& random;
    mds::KeyValueStore& store;
    std::shared_ptr<rdma::Transport> transport;
    std::string boot_id;
  };
  explicit MetadataServer(const Host& host);

  // The brick answers from now on, or no more.
  void brick_up(brick::Control& control);
  void brick_down();

  bool ready() const { return layouts.ready(); }

  const Host host;
  ControlLink brick;
  mds::testing::BrickPlug plug;
  mds::Counters counters;
  mds::ServerLimits limits;
  mds::BootRecord boot;
  std::unique_ptr<mds::Namespace> names;
  std::unique_ptr<mds::BrickList> list;
  mds::Exports exports;
  std::unique_ptr<mds::HandleKeys> handles;
  mds::ClientTable clients;
  mds::SessionTable sessions;
  mds::OpenTable opens;
  mds::LockTable locks;
  mds::StateStore state_store;
  mds::GracePeriod grace;
  mds::CallbackChannel callbacks;
  mds::LockWaiters lock_waiters;
  mds::DelegationTable delegation_table;
  mds::Delegations delegations;
  mds::HostNameService name_service;
  mds::UserGroups user_groups;
  mds::LayoutCallbacks layout_callbacks;
  mds::DataPlane layouts;
  mds::LeaseKeeper leases;
  mds::ServerIdentity identity;
  mds::Services services;
  mds::Compounds compounds;
};

}  // namespace pnfsrdma::crash
