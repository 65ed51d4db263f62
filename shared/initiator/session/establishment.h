// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "shared/initiator/session/options.h"
#include "shared/initiator/session/socket.h"
#include "shared/nfs4/compound.h"

namespace pnfsrdma::initiator {

// How much must be reestablished, each including those before it.
enum class Damage { kConnection = 0, kSession = 1, kClient = 2 };

// What client and server agreed on. A value.
struct Established {
  uint32_t minor_version = 2;
  uint64_t clientid = 0;
  nfs4::SessionId session_id{};
  uint32_t slots = 1;
  uint32_t operations_max = 16;      // of one COMPOUND
  uint32_t request_size_max = 4096;  // bytes
  uint32_t response_size_max = 4096;
  uint32_t callback_slots = 1;
  Milliseconds lease = std::chrono::seconds(30);
  std::string implementation;  // eir_server_impl_id's name
};

struct Recovered {
  Established established;
  bool new_session = false;
  bool new_client = false;  // all state is gone; reclaim it
};

// EXCHANGE_ID, CREATE_SESSION and BIND_CONN_TO_SESSION: brings a fresh connection into a session. It has the
// connection to itself meanwhile. Keeps the identity of the client (owner, verifier, clientid, csa_sequence).
// Not thread-safe.
class Establishment {
 public:
  // Calls of the server that arrive meanwhile.
  using CallHandler = std::function<void(const std::shared_ptr<SessionSocket>&, Bytes record)>;

  // `stop`: give up as soon as it is true.
  Establishment(const SessionOptions& options, const std::atomic<bool>& stop, CallHandler on_call);

  // Errors: ECONNRESET, ETIMEDOUT (try again on a new connection), EPROTO, EPROTONOSUPPORT (neither minor
  // version), EBUSY (another client uses our owner id), EREMCHG (another server than before), ECANCELED (stop);
  // others as the server's status says. `session_lost` is called before a new session takes the place of one
  // that is lost, unless the client is lost as well; its error ends the attempt. `elsewhere`: this is not the host
  // that answered last, so it first has to say that it is the same server.
  Result<Recovered> recover(const std::shared_ptr<SessionSocket>& socket, Damage damage, bool elsewhere,
                            const std::function<Result<>()>& session_lost);

  // The next one that answers is the server.
  void forget_server() { server_.reset(); }

  // Sends these bytes and waits for their answer, whatever it says.
  Result<Bytes> repeat(const std::shared_ptr<SessionSocket>& socket, ByteSpan request, uint32_t xid);

  // DESTROY_SESSION and DESTROY_CLIENTID; what the server says to it does not matter.
  void destroy(const std::shared_ptr<SessionSocket>& socket);

  // One COMPOUND outside of any session. `patience` for the reply.
  Result<nfs4::CompoundResults> exchange(const std::shared_ptr<SessionSocket>& socket,
                                         nfs4::ArgumentOperation operation, Milliseconds patience);

 private:
  Result<> try_to_recover(const std::shared_ptr<SessionSocket>& socket, Damage damage, bool elsewhere,
                          const std::function<Result<>()>& session_lost);
  Result<> begin_session(const std::shared_ptr<SessionSocket>& socket);
  Result<bool> bind(const std::shared_ptr<SessionSocket>& socket);
  Result<> exchange_id(const std::shared_ptr<SessionSocket>& socket);
  Result<> check_server(const nfs4::ExchangeIdResult& result);
  Result<nfs4::Status> create_session(const std::shared_ptr<SessionSocket>& socket);
  Result<Bytes> await(const std::shared_ptr<SessionSocket>& socket, uint32_t xid, Milliseconds patience);
  nfs4::CreateSessionArguments session_wish() const;
  void note_session(const nfs4::CreateSessionResult& result);

  const SessionOptions& options_;
  const Milliseconds patience_;
  const std::atomic<bool>& stop_;
  CallHandler on_call_;
  nfs4::Verifier verifier_{};  // of this incarnation of the client
  uint32_t create_sequence_ = 0;
  uint32_t next_xid_ = 1;
  Established established_;
  // Of several hosts: owner and scope of the server that recover() has found, and of the one that was asked last.
  using Server = std::pair<nfs4::OwnerId, nfs4::OwnerId>;
  std::optional<Server> server_, asked_;
  // Since the last recover() that succeeded: one that failed may have made them all the same.
  bool new_session_ = false, new_client_ = false;
};

}  // namespace pnfsrdma::initiator
