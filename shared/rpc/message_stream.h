// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "shared/base/bytes.h"
#include "shared/base/result.h"
#include "shared/rpc/tls.h"

namespace pnfsrdma::rpc {

class MemoryAccount;

// What carries whole RPC messages to a peer and from it: record-marked TCP or Unix (RecordStream), or
// RPC-over-RDMA (shared/rpc_rdma). A Connection owns one and knows nothing else of the wire. Everything
// happens in the loop's thread; no handler is called from inside a method of the stream, except of resume().
class MessageStream {
 public:
  struct Handlers {
    std::function<void(Bytes message)> on_message;
    std::function<void()> on_sent;  // unsent_bytes() has become less
    std::function<void()> on_part;  // bytes came that end no message; may be empty
    // The end, once: after it nothing comes and nothing goes.
    std::function<void(Error reason)> on_failed;
    std::function<void()> on_secured{};  // the handshake of start_tls() is over; may be empty
  };

  virtual ~MessageStream() = default;

  // Handlers are called from now on, until close().
  virtual void start(Handlers handlers) = 0;
  // Queues one message: a call or a reply, its RPC header and what stands behind it (may be null). What one
  // turn of the loop queues leaves together at its end.
  virtual void send(Bytes head, std::shared_ptr<const Bytes> body) = 0;
  // The call with this XID will never be answered.
  virtual void forget_call(uint32_t /*xid*/) {}
  // Our own call with this XID is not waited for any more: a late reply may be dropped.
  virtual void forget_reply(uint32_t /*xid*/) {}

  // From here on everything goes through the session (RFC 9289); what was queued before leaves as it is. on_secured
  // comes when the handshake is over, and messages queued until then leave behind it. False: the stream cannot, or
  // bytes have come already behind the last message, which would be taken for something that the session has protected;
  // nothing has changed then.
  virtual bool start_tls(std::unique_ptr<TlsSession> /*session*/) { return false; }
  // Who is at the other end, if a handshake is over; null else.
  virtual const TlsPeer* tls_peer() const { return nullptr; }
  // TlsSession::reassess(); nothing to say without one.
  virtual Result<> reassess_tls() const { return {}; }

  // Reads at most so much at once, where the stream can tell: for a peer whose next bytes may be too many.
  virtual void limit_reads(size_t /*bytes*/) {}
  // What outlives close(), because it is freed in parts, counts there. Before start().
  virtual void count_in(std::shared_ptr<MemoryAccount> /*memory*/) {}
  // Stops delivering messages (back-pressure); the end of the stream is still noticed.
  virtual void pause() = 0;
  // Goes on. Messages that have come already are delivered in the next turn.
  virtual void resume() = 0;
  // Ends it at once: what is not sent is lost, no handler is called any more. Idempotent.
  virtual void close() = 0;

  virtual size_t unsent_bytes() const = 0;
  // Memory of messages that have come in part, or wait to be delivered.
  virtual size_t received_bytes() const { return 0; }
  // Has a message begun whose end has not come?
  virtual bool mid_message() const { return false; }
  // "192.0.2.7:1023", or "unix".
  virtual const std::string& peer() const = 0;
  // "tcp", "unix", "rdma-verbs", "rdma-iwarp".
  virtual std::string transport() const = 0;
  virtual bool is_unix() const { return false; }
  virtual bool is_rdma() const { return false; }
  // Who is at the other end of a Unix socket (SO_PEERCRED).
  virtual std::optional<ucred> peer_credentials() const { return std::nullopt; }
};

}  // namespace pnfsrdma::rpc
