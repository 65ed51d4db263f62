// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "server/mds/state/activity.h"
#include "server/mds/state/stateid.h"
#include "shared/base/bytes.h"
#include "shared/base/clock.h"
#include "shared/nfs4/session_operations.h"

namespace pnfsrdma::mds {

using ClientId = uint64_t;
class Session;

// Who made the client record: with AUTH_SYS the flavor and the uid (RFC 8881, 2.4.3). Any user of a host may claim any
// uid, but not from a port below 1024.
struct Principal {
  uint32_t flavor = 0;
  uint32_t uid = 0;
  bool reserved_port = false;  // or by RDMA

  // Whether the record of `owner` is his to confirm and to replace.
  bool may_act_for(const Principal& owner) const {
    return flavor == owner.flavor && uid == owner.uid && (reserved_port || !owner.reserved_port);
  }
};

// One client ID (RFC 8881, 2.4). Shared by the ClientTable and the COMPOUNDs that run for it, so that a
// suspended one wakes up beside its client; `gone` tells it that the client has been dropped meanwhile.
struct Client {
  // What survives a restart of the daemon (state_store.h).
  ClientId id = 0;
  Bytes owner;                     // co_ownerid
  xdr::FixedOpaque<8> verifier{};  // co_verifier: another one means the client rebooted
  Principal principal;
  bool confirmed = false;
  bool reclaim_complete = false;
  uint32_t create_sequence = 0;  // csa_sequence of the last CREATE_SESSION that was run, 0 before the first

  // What does not.
  std::string address;  // whose share of the table it is (ClientTable); empty: not known, after a restart
  uint64_t unconfirmed_as = 0;  // in the order in which they came
  Activity activity;
  ReportedIo reported;
  std::string mount_point;                                // as the client told it; empty: it did not
  std::optional<nfs4::CreateSessionResult> create_reply;  // CREATE_SESSION's replay cache (RFC 8881, 18.36.4)
  SteadyTime lease_end;
  uint32_t running_compounds = 0;  // a lease does not end under a COMPOUND of its client
  bool creating_session = false;   // a CREATE_SESSION of it is suspended
  bool gone = false;
  std::vector<Session*> sessions;
  uint32_t status_flags = 0;  // SEQ4_STATUS_* bits that stay until something clears them
};

}  // namespace pnfsrdma::mds
