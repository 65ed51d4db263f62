// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "shared/base/event_loop.h"
#include "shared/base/result.h"
#include "shared/nfs4/compound.h"
#include "shared/rpc/connection.h"
#include "shared/rpc/socket_address.h"

namespace pnfsrdma::bench {

// Puts one operation behind those that are there, without the copy into a variant that add() makes.
template <typename Arguments>
void put(nfs4::CompoundWriter& compound, const Arguments& arguments) {
  xdr::encode(compound.begin(nfs4::kOperationOf<Arguments>), arguments);
}
// PUTFH
inline void put_handle(nfs4::CompoundWriter& compound, const nfs4::FileHandle& handle) {
  put(compound, nfs4::PutFileHandleArguments{handle});
}

// What a client is and how it asks.
struct ClientOptions {
  std::string owner;  // co_ownerid: another one for each client
  uint32_t minor_version = 1;
  uint32_t slots = 1;
  rpc::AuthSys credential;
};

// One NFSv4.1 client (RFC 8881): a TCP connection, a clientid and a session, without a backchannel: it holds
// nothing that anybody else wants. It never reconnects: a lost connection fails what is outstanding, and the
// measurement with it. Lives in one EventLoop and belongs to its thread; callbacks come from the loop.
class Client {
 public:
  using Ready = std::function<void(Result<>)>;
  using Build = std::function<void(nfs4::CompoundWriter&)>;
  // The results behind SEQUENCE, or why there are none. The reader is valid during the call only.
  using Answered = std::function<void(Result<nfs4::CompoundResultReader*>)>;

  Client(EventLoop& loop, ClientOptions options) : loop_(loop), options_(std::move(options)) {}
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // Connects, makes clientid and session, and ends the reclaiming it never begins (RECLAIM_COMPLETE).
  void establish(const rpc::SocketAddress& address, Ready done);
  // DESTROY_SESSION, DESTROY_CLIENTID, and closes.
  void leave(Ready done);

  // SEQUENCE and what `build` puts behind it, on a slot that must be free. `cache`: the server shall keep the
  // answer, as clients ask for what cannot be repeated.
  void call(uint32_t slot, bool cache, const Build& build, Answered done);

  // As the server granted it, at least 1.
  uint32_t slots() const { return static_cast<uint32_t>(slots_.size()); }

 private:
  static constexpr int kRepetitions = 600;

  struct Slot {
    uint32_t sequence = 1;
    bool busy = false;
  };

  void exchange_id(Ready done);
  void create_session(Ready done);
  void reclaim_complete(Ready done);
  // One COMPOUND outside the session; again while the server says DELAY, so many times at most.
  void ask(const char* what, Build build, Answered done, int repetitions = kRepetitions);
  void send(Bytes arguments, rpc::Connection::ReplyHandler done);
  Bytes begin_compound() const;

  EventLoop& loop_;
  const ClientOptions options_;
  rpc::ConnectionPointer connection_;
  uint64_t client_id_ = 0;
  uint32_t create_sequence_ = 0;
  nfs4::SessionId session_id_{};
  rpc::OpaqueAuth credential_;
  std::vector<Slot> slots_;
};

}  // namespace pnfsrdma::bench
