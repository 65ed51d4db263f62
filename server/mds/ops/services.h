// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "shared/base/clock.h"
#include "shared/base/random.h"
#include "shared/xdr/types.h"

namespace pnfsrdma {
class TurnTimes;
}

namespace pnfsrdma::mds {

class CallbackChannel;
class ClientTable;
class DataOperations;
class Delegations;
class Exports;
class GracePeriod;
class HandleKeys;
class KeyValueStore;
class LayoutConflicts;
class Namespace;
class OpenTable;
class SessionTable;
class LeaseKeeper;
class LockTable;
class LockWaiters;
class StateStore;
class UserGroups;
struct Counters;
struct ServerLimits;

// Who this server is, the same as long as its store lives: server owner and scope (RFC 8881, 2.5) and file
// system id.
struct ServerIdentity {
  xdr::FixedOpaque<16> instance{};
};

// The server's parts as a handler reaches them. main() builds the parts and this; everything outlives every
// COMPOUND.
struct Services {
  const Clock& clock;
  Random& random;
  const ServerLimits& limits;
  const ServerIdentity& identity;
  const Exports& exports;
  HandleKeys& handles;
  KeyValueStore& store;
  Namespace& names;
  ClientTable& clients;
  SessionTable& sessions;
  OpenTable& opens;
  GracePeriod& grace;
  StateStore& state_store;
  LeaseKeeper& leases;
  LayoutConflicts& layouts;
  DataOperations& data;
  CallbackChannel& callbacks;
  Counters& counters;
  LockTable& locks;
  LockWaiters& lock_waiters;
  TurnTimes& turns;
  UserGroups& user_groups;
  Delegations& delegations;
};

}  // namespace pnfsrdma::mds
