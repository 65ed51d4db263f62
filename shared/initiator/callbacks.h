// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include "shared/nfs4/basic_types.h"
#include "shared/nfs4/callback_operations.h"
#include "shared/nfs4/status.h"

namespace pnfsrdma::initiator {

// What a handler makes of one callback: the status for the server, and what to do once that reply is sent
// (a recall's drain, LAYOUTCOMMIT and LAYOUTRETURN are handed to others there; may be empty). Both run on the
// session's recall thread, and callbacks behind this one wait for them.
struct CallbackAnswer {
  nfs4::Status status = nfs4::Status::kOk;
  std::function<void()> then;
};

// What the server asks of the client on the backchannel. Called on one thread of the session's own, one
// callback at a time, in the server's order. A handler may block and may call the session with
// Urgency::kReserved; it must never wait for a lock that a FUSE thread holds across a call (DESIGN.md section
// 9).
class CallbackHandler {
 public:
  virtual ~CallbackHandler() = default;
  virtual CallbackAnswer layout_recall(const nfs4::CallbackLayoutRecallArguments& arguments) = 0;
  virtual CallbackAnswer recall_any(const nfs4::CallbackRecallAnyArguments& arguments) = 0;
  // A delegation. By default there is none of that stateid.
  virtual CallbackAnswer recall(const nfs4::CallbackRecallArguments&) {
    return {nfs4::Status::kBadStateid, {}};
  }
  // What is known here of a file that is delegated to us to write. Waits for nothing. By default there is none.
  virtual nfs4::CallbackGetAttributesResponse get_attributes(const nfs4::CallbackGetAttributesArguments&) {
    return nfs4::Status::kBadHandle;
  }
  virtual CallbackAnswer notify_deviceid(const nfs4::CallbackNotifyDeviceIdArguments& arguments) = 0;
  // A lock that was denied looks free.
  virtual CallbackAnswer notify_lock(const nfs4::CallbackNotifyLockArguments&) { return {}; }
};

// What must be made good after the server lost or dropped state. Called on the session's recovery thread
// while ordinary calls wait; only calls with CallOptions::recovery = true get through, and those never wait
// for recovery themselves.
class RecoveryHandler {
 public:
  virtual ~RecoveryHandler() = default;
  // generation() has changed: a new clientid, or state is in doubt. Drop layouts without returning them. Must
  // not block.
  virtual void layouts_lost() = 0;
  // generation() has changed: a new session of the same client, so its state is as it was. Whether the server knows
  // all of its layouts still is asked next (stateids_in_doubt()); until then a handle answers for itself, and what
  // is answered without asking anybody is not believed. Must not block.
  virtual void session_renewed() {}
  // The clientid is new, or stateids are in doubt: reclaim opens with CLAIM_PREVIOUS; RECLAIM_COMPLETE
  // follows when this returns.
  virtual void reclaim() = 0;
  // Behind RECLAIM_COMPLETE, before which a server gives no new state (RFC 8881, 18.51.3): what could not be
  // reclaimed (the lease ran out, there was no grace) is reopened or broken.
  virtual void reopen() {}
  // An answer, which its caller does not have yet, shows revoked state (SEQ4_STATUS_*_REVOKED). On any
  // thread; must not block.
  virtual void state_revoked() {}
  // The server says that it has revoked state, and keeps it in mind until it is freed: which stateids may
  // that be? Those that are lost and those that are held without another way to learn of it. Must not block.
  virtual std::vector<nfs4::Stateid> stateids_in_doubt() { return {}; }
  // The server does not know it any more. Must not block.
  virtual void stateid_gone(const nfs4::Stateid&) {}
};

}  // namespace pnfsrdma::initiator
