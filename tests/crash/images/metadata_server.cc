// SPDX-License-Identifier: Apache-2.0
#include "tests/crash/images/metadata_server.h"

#include "server/mds/state/recovery.h"
#include "shared/base/check.h"

namespace pnfsrdma::crash {
namespace {

// Time runs fast here: no lease may run out on a client that is merely waiting.
constexpr Milliseconds kLease = std::chrono::hours(24);

mds::ServerLimits limits_of_test() {
  mds::ServerLimits limits;
  limits.lease = kLease;
  return limits;
}

mds::Export root_export() {
  mds::Export root;
  root.squash = mds::Squash::kNone;
  return root;
}

constexpr const char* kBrick = "brick";

template <typename T>
T unwrap(Result<T> result) {
  CHECK(result);
  return std::move(*result);
}

mds::BrickList& configured(mds::BrickList& list) {
  CHECK(list.configure({kBrick}));
  return list;
}

mds::ConnectBrick lending(mds::testing::BrickPlug& plug, brick::Control& brick) {
  plug.lend(kBrick, brick);
  return plug.connector();
}

}  // namespace

MetadataServer::MetadataServer(const Host& host_in)
    : host(host_in),
      brick(host.loop),
      limits(limits_of_test()),
      boot(unwrap(mds::open_boot(host.store, host.random, host.boot_id))),
      names(unwrap(mds::Namespace::open(host.store, host.clock, boot.boot_count))),
      list(unwrap(mds::BrickList::open(host.store, host.clock))),
      exports(*names, {root_export()}),
      handles(
          mds::HandleKeys::open(host.store, host.random, host.clock, exports, boot.boot_count > 1).value()),
      clients(host.clock, host.random, limits.lease),
      sessions(host.random),
      state_store(host.store),
      grace(host.clock),
      callbacks(host.loop, clients, sessions, limits.lease),
      lock_waiters(host.clock, locks, callbacks, limits.lease),
      delegations(host.loop, delegation_table, callbacks, state_store, counters, limits.lease),
      user_groups(host.loop, name_service),
      layout_callbacks(callbacks, clients, opens, delegation_table, *names, *handles),
      layouts({.loop = host.loop,
               .clock = host.clock,
               .random = host.random,
               .names = *names,
               .list = configured(*list),
               .connect = lending(plug, brick),
               .recaller = layout_callbacks,
               .counters = counters},
              {.first_epoch = boot.epoch,
               .owner = "crash test",
               .lease = limits.lease,
               .metadata_era = boot.era,
               .transports = {{host.transport, host.transport->make_protection_domain()}}}),
      leases(clients, sessions, opens, locks, delegations, state_store, layouts.conflicts(), counters),
      identity{boot.instance},
      services{host.clock,     host.random,  limits,
               identity,       exports,      *handles,
               host.store,     *names,       clients,
               sessions,       opens,        grace,
               state_store,    leases,       layouts.conflicts(),
               layouts.data(), callbacks,    counters,
               locks,          lock_waiters, host.loop.turns(),
               user_groups,    delegations},
      compounds(services) {
  names->set_in_use([this](mds::InodeId inode) {
    return layout_callbacks.is_open(inode) || layouts.conflicts().file_in_use(inode);
  });
  delegations.set_unused([this](mds::InodeId inode) {
    if (!opens.is_open(inode)) layouts.conflicts().on_last_close({inode}, [] {});
  });
  delegations.set_fence([this](mds::ClientId client, mds::InodeId inode,
                               std::function<void(mds::LayoutConflicts::Fence)> done) {
    layouts.conflicts().before_delegation_revoked(client, inode, std::move(done));
  });
  const auto expiring =
      mds::recover_state(boot, state_store, clients, opens, locks, delegation_table, grace, limits.lease);
  CHECK(expiring);
  leases.resume(*expiring);
}

void MetadataServer::brick_up(brick::Control& control) {
  brick.attach(control);
  plug.up(kBrick);
}

void MetadataServer::brick_down() {
  plug.down(kBrick);
  brick.detach();
}

}  // namespace pnfsrdma::crash
