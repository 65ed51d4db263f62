// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <expected>
#include <functional>
#include <memory>
#include <utility>

#include "server/mds/state/client_table.h"
#include "server/mds/state/session_table.h"
#include "shared/base/event_loop.h"
#include "shared/base/lifetime.h"
#include "shared/nfs4/operations.h"

namespace pnfsrdma::mds {

enum class CallbackFailure {
  kNoPath,   // the client is gone, or has bound no connection for callbacks in time
  kTimeout,  // it has not answered in time
  kRefused,  // it does not take callbacks: RPC or CB_SEQUENCE failed
};

// Calls clients back over the connections they have bound to their sessions (RFC 8881, 2.10.3.1 and 20.9):
// picks a slot, puts CB_SEQUENCE in front, and tries again over another connection, under the same seqid,
// when one breaks. Control loop only.
class CallbackChannel {
 public:
  using Answer = std::expected<nfs4::CallbackResultOperation, CallbackFailure>;
  using Done = std::function<void(Answer)>;

  // `timeout`: how long a call may take in all, waiting for a path or a slot included.
  CallbackChannel(EventLoop& loop, ClientTable& clients, SessionTable& sessions, Milliseconds timeout);
  CallbackChannel(const CallbackChannel&) = delete;
  CallbackChannel& operator=(const CallbackChannel&) = delete;

  // One operation behind CB_SEQUENCE. `done` is called exactly once, never from inside call(), with the
  // operation's result whatever its status; not at all if the channel goes first.
  void call(ClientId client, nfs4::CallbackArgumentOperation operation, Done done) {
    call(client, std::move(operation), timeout_, std::move(done));
  }
  // The same, and it is dropped (kNoPath) if it has not been sent within that time, for want of a path or a slot.
  void call(ClientId client, nfs4::CallbackArgumentOperation operation, Milliseconds patience, Done done);

 private:
  struct Call;
  struct Place;
  using CallPointer = std::shared_ptr<Call>;

  bool find_place(const Client& client, Place& place);
  bool find_place_of_before(const CallPointer& call, Place& place);
  void attempt(const CallPointer& call);
  void send(const CallPointer& call, Place place);
  void retry(const CallPointer& call, CallbackFailure why);
  void answered(const CallPointer& call, const Place& place, Result<rpc::Reply> reply);
  void sequence_failed(const CallPointer& call, const Place& place, nfs4::Status status);

  EventLoop& loop_;
  ClientTable& clients_;
  SessionTable& sessions_;
  const Milliseconds timeout_;
  Lifetime lifetime_;
};

}  // namespace pnfsrdma::mds
