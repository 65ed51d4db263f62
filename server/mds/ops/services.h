// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "shared/base/clock.h"
#include "shared/base/random.h"

namespace pnfsrdma::mds {

class CallbackChannel;
class ClientTable;
class Counters;
class DataOperations;
class Exports;
class GracePeriod;
class KeyValueStore;
class LayoutConflicts;
class Namespace;
class OpenTable;
class SessionTable;
struct ServerLimits;

// The server's parts as a handler reaches them. main() builds the parts and this; everything outlives every
// COMPOUND.
struct Services {
  const Clock& clock;
  Random& random;
  const ServerLimits& limits;
  const Exports& exports;
  KeyValueStore& store;
  Namespace& names;
  ClientTable& clients;
  SessionTable& sessions;
  OpenTable& opens;
  GracePeriod& grace;
  LayoutConflicts& layouts;
  DataOperations& data;
  CallbackChannel& callbacks;
  Counters& counters;
};

}  // namespace pnfsrdma::mds
