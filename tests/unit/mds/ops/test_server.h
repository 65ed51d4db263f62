// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/mds/meta/namespace.h"
#include "server/mds/ops/compound.h"
#include "server/mds/ops/handle_keys.h"
#include "server/mds/ops/services.h"
#include "server/mds/state/callback_channel.h"
#include "server/mds/state/client_table.h"
#include "server/mds/state/counters.h"
#include "server/mds/state/delegations.h"
#include "server/mds/state/grace.h"
#include "server/mds/state/lease_keeper.h"
#include "server/mds/state/lock_waiters.h"
#include "server/mds/state/recovery.h"
#include "server/mds/state/server_limits.h"
#include "server/mds/state/session_table.h"
#include "server/mds/state/state_memory.h"
#include "server/mds/state/state_store.h"
#include "tests/doubles/manual_clock.h"
#include "tests/doubles/metadata/memory_store.h"
#include "tests/doubles/seeded_random.h"
#include "tests/unit/mds/ops/fake_data.h"
#include "tests/unit/mds/ops/fake_layouts.h"
#include "tests/unit/mds/ops/fake_name_service.h"

namespace pnfsrdma::mds {

using Operations = std::vector<nfs4::ArgumentOperation>;

// What survives a restart of the daemon: the clock, the loop and the store.
struct TestHost {
  ManualClock clock;
  SeededRandom random{7};
  EventLoop loop{clock};
  MemoryStore store{loop};
  NamespaceOptions options;
  rpc::MemoryLimits memory_limits;
  uint64_t starts = 0;
  Milliseconds lease_before{};  // that clients of earlier starts were told

  void turn() { loop.run_once(Milliseconds(0)); }
};

// The whole MDS but network and bricks, entered where the network enters it.
class TestServer {
 public:
  explicit TestServer(TestHost& host, std::vector<Export> exports = {default_export()}, bool same_boot = true,
                      bool served_before = false);

  static Export default_export() {
    Export one;
    one.squash = Squash::kNone;
    return one;
  }

  // Instead of the fakes, from now on (but for the end of clients, which the fake layouts hear of).
  void use(LayoutConflicts& layouts, DataOperations& data);

  // Encodes, runs and decodes one COMPOUND. CHECKs that it is answered at once (within a few turns of the
  // loop).
  nfs4::CompoundResults call(const Operations& operations,
                             const Credentials& who = {.uid = 0, .gid = 0, .groups = {}},
                             uint32_t minor_version = 2);
  // From now on the calls come from there, by RPC-over-RDMA or by TCP.
  std::string peer = "127.0.0.1:900";
  bool rdma = false;
  uint32_t flavor = 1;  // AUTH_SYS
  // The raw bytes of the reply; null as long as there is none.
  std::shared_ptr<std::shared_ptr<const Bytes>> begin(
      const Operations& operations, const Credentials& who = {.uid = 0, .gid = 0, .groups = {}},
      uint32_t minor_version = 2);

  TestHost& host;
  Counters counters;
  ServerLimits limits;
  ServerIdentity identity;
  std::unique_ptr<Namespace> names;
  Exports exports;
  std::unique_ptr<HandleKeys> handles;
  ClientTable clients;
  rpc::MemoryBudget memory;
  StateMemory state_memory;
  SessionTable sessions;
  OpenTable opens;
  LockTable locks;
  StateStore state_store;
  GracePeriod grace;
  CallbackChannel callbacks;
  LockWaiters lock_waiters;
  DelegationTable delegation_table;
  Delegations delegations;
  FakeLayouts layouts;
  FakeData data;
  LeaseKeeper leases;
  FakeNameService name_service;
  UserGroups user_groups;
  Services services;
  Compounds compounds;
};

// One client with one session, who puts SEQUENCE in front.
class TestClient {
 public:
  explicit TestClient(TestServer& server, const std::string& owner = "client", uint64_t incarnation = 1);

  // EXCHANGE_ID, CREATE_SESSION, RECLAIM_COMPLETE.
  void connect();
  nfs4::ExchangeIdResponse exchange_id(uint32_t flags = 0);
  nfs4::CreateSessionResponse create_session(uint32_t sequence);
  nfs4::CreateSessionArguments session_arguments(uint32_t sequence) const;

  // `operations` behind SEQUENCE on slot 0, each time with the next seqid. The result of SEQUENCE is not in
  // it.
  nfs4::CompoundResults call(Operations operations);
  nfs4::SequenceArguments next_sequence();
  // The status of the last operation.
  nfs4::Status status(Operations operations) { return call(std::move(operations)).status; }

  // Behind PUTROOTFH: OPEN of a name in the root. Its stateid and filehandle.
  nfs4::OpenArguments open_arguments(const std::string& name, uint32_t access, uint32_t deny = 0,
                                     const std::string& owner = "owner") const;
  nfs4::OpenResponse open(const nfs4::OpenArguments& arguments);
  nfs4::FileHandle last_handle;

  TestServer& server;
  nfs4::ClientOwner owner;
  Credentials who{.uid = 0, .gid = 0, .groups = {}};
  uint64_t id = 0;
  uint32_t create_sequence = 0;
  nfs4::SessionId session{};
  uint32_t seqid = 0;
  bool cache = true;
};

// The body of the result at `index`, which has to be one of this operation.
template <typename Response>
const Response& response_at(const nfs4::CompoundResults& results, size_t index) {
  return std::get<Response>(results.operations.at(index));
}
// A name, the way to its directory, and the file that it is believed to lead to.
struct NamedFile {
  Operations directory;
  std::string name;
  nfs4::FileHandle file;
};
// The exchange of two names, as docs/protocol.md has it.
Operations exchanging(const NamedFile& first, const NamedFile& second);

inline nfs4::CreateHow create_how(nfs4::CreateMode mode, nfs4::Attributes attributes = {}) {
  auto how = nfs4::CreateHow::of(mode);
  if (mode == nfs4::CreateMode::kUnchecked)
    *how.get_if<nfs4::CreateMode::kUnchecked>() = std::move(attributes);
  else if (mode == nfs4::CreateMode::kGuarded)
    *how.get_if<nfs4::CreateMode::kGuarded>() = std::move(attributes);
  return how;
}
inline nfs4::OpenHow creating(nfs4::CreateHow how) {
  return nfs4::OpenHow::make<nfs4::OpenType::kCreate>(std::move(how));
}
inline nfs4::Attributes mode_attribute(uint32_t mode) {
  nfs4::Attributes attributes;
  attributes.mode = mode;
  return attributes;
}

}  // namespace pnfsrdma::mds
