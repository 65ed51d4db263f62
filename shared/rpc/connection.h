// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "shared/base/event_loop.h"
#include "shared/base/owned.h"
#include "shared/base/result.h"
#include "shared/rpc/limits.h"
#include "shared/rpc/memory_budget.h"
#include "shared/rpc/message.h"
#include "shared/rpc/message_stream.h"
#include "shared/rpc/tls.h"

namespace pnfsrdma::rpc {

class Connection;
using ConnectionPointer = std::shared_ptr<Connection>;

struct ConnectionOptions {
  size_t record_bytes_max = kRecordBytesMax;
  size_t unsent_bytes_max = kUnsentBytesMax;
  size_t calls_unanswered_max = kCallsUnansweredMax;
  size_t calls_outstanding_max = kCallsOutstandingMax;
  std::shared_ptr<MemoryAccount> memory;  // of this connection; null: nobody counts
  // Of a server, for peers that ask with AUTH_TLS (RFC 9289, 4.1). Null: such a call goes to the CallHandler like any
  // other, which refuses it.
  std::shared_ptr<TlsEndpoint> tls;
  // Calls that are not protected are refused (AUTH_TOOWEAK), and the peer has tls_patience to become so.
  bool tls_required = false;
  Milliseconds tls_patience{kTlsPatienceMs};
};

// A call from the peer. `arguments` points into `record`: moving keeps it valid, copying is not possible.
struct IncomingCall {
  CallHeader header;
  Bytes record;
  ByteSpan arguments;

  IncomingCall() = default;
  IncomingCall(IncomingCall&&) = default;
  IncomingCall& operator=(IncomingCall&&) = default;
};

// The answer to a call of ours. `results` points into `record`.
struct Reply {
  Bytes record;
  ByteSpan results;

  Reply() = default;
  Reply(Reply&&) = default;
  Reply& operator=(Reply&&) = default;
};

// The right to answer one call, once, now or later, from the loop's thread. If it goes unanswered the caller
// gets SYSTEM_ERR; if the connection is gone the answer is dropped.
class Responder {
 public:
  Responder() = default;
  Responder(std::weak_ptr<Connection> connection, uint32_t xid, size_t request_bytes)
      : connection_(std::move(connection)), xid_(xid), request_bytes_(request_bytes) {}
  Responder(Responder&& other) noexcept
      : connection_(std::exchange(other.connection_, {})),
        xid_(other.xid_),
        request_bytes_(other.request_bytes_) {}
  Responder& operator=(Responder&& other) noexcept;
  ~Responder();

  // SUCCESS and the encoded results.
  void reply(Bytes results);
  // The same bytes that somebody else keeps too (a session's reply cache): not copied.
  void reply(std::shared_ptr<const Bytes> results);
  void refuse(AcceptStatus status);
  void refuse_version(VersionRange supported);
  void refuse_auth(AuthStatus status);
  // Answers nothing, ever. For a call whose client has to retry on another connection.
  void drop();

  uint32_t xid() const { return xid_; }
  // Is there still somebody to answer?
  bool connected() const;

 private:
  void answer(const ReplyHeader& header, std::shared_ptr<const Bytes> body);

  std::weak_ptr<Connection> connection_;
  uint32_t xid_ = 0;
  size_t request_bytes_ = 0;  // what the call holds until it is answered
};

// ONC RPC in both directions over one stream of messages (TCP, Unix, RPC-over-RDMA). It lives in the loop
// from start() until it is closed, by close(), by the peer or by an error: the loop owns a reference, users
// hold others as they like. All methods and callbacks belong to the loop's thread.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  using CallHandler = std::function<void(const ConnectionPointer&, IncomingCall, Responder)>;
  // Called once, with the reason, when the connection is gone and its outstanding calls have failed.
  using CloseHandler = std::function<void(const ConnectionPointer&, const Error& reason)>;
  using ReplyHandler = std::function<void(Result<Reply>)>;
  // A server's, called once when the peer's TLS handshake is over, before any call of it.
  using SecuredHandler = std::function<void(const ConnectionPointer&)>;

  // Takes a connected stream socket. Without a CallHandler every call is answered PROG_UNAVAIL.
  static ConnectionPointer start(EventLoop& loop, FileDescriptor socket, ConnectionOptions options,
                                 CallHandler on_call, CloseHandler on_close = nullptr);
  // The same over any stream, not started yet.
  static ConnectionPointer start(EventLoop& loop, std::shared_ptr<MessageStream> stream,
                                 ConnectionOptions options, CallHandler on_call,
                                 CloseHandler on_close = nullptr);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Calls the peer. `done` is called exactly once, never from inside call(): with the reply, or ETIMEDOUT,
  // ECONNRESET (the connection closed), EAGAIN (too many outstanding) or what ReplyHeader::to_error() makes
  // of a refusal. After ETIMEDOUT a late reply is dropped.
  void call(uint32_t program, uint32_t version, uint32_t procedure, const OpaqueAuth& credential,
            Bytes arguments, Milliseconds timeout, ReplyHandler done);

  // Of a client, on a new connection: everything from here on goes by TLS (RFC 9289), to a server whose certificate
  // names `peer`, or nothing at all: any failure closes the connection. Other calls fail with EAGAIN until `done` is
  // called, once, never from inside: when the server has answered a null call through it, which says that it takes our
  // certificate (in TLS 1.3 a client's handshake ends before the server has looked). The null calls, first the probe,
  // are of `program` and `version`. ENOTSUP: the server does not offer TLS; EACCES: one of both does not take the
  // other; EPROTO; ETIMEDOUT after `timeout`; ECONNRESET.
  void start_tls(TlsEndpoint& tls, const std::string& peer, uint32_t program, uint32_t version,
                 Milliseconds timeout, std::function<void(Result<>)> done);
  // Whom the other end has shown to be; null without TLS, or before the handshake is over.
  const TlsPeer* tls_peer() const { return stream_->tls_peer(); }
  // Closes the connection if the peer's certificate would not be taken any more.
  void reassess_tls();

  // Closes now; what is not sent is lost. Harmless when closed already.
  void close();
  // Closes when everything queued has been sent; reads nothing more.
  void close_when_sent();
  bool is_open() const { return open_; }

  // Replaces the handler of calls, e.g. when the back channel comes to life on a client's connection.
  void on_call(CallHandler handler);
  // Adds a handler; they run in the order they came.
  void on_close(CloseHandler handler);
  void on_secured(SecuredHandler handler) { on_secured_ = std::move(handler); }

  // "192.0.2.7:1023", or "unix" for a Unix socket.
  const std::string& peer() const { return stream_->peer(); }
  std::string transport() const { return stream_->transport(); }
  bool is_unix() const { return stream_->is_unix(); }
  bool is_rdma() const { return stream_->is_rdma(); }
  // Who is at the other end of a Unix socket (SO_PEERCRED); nothing for others.
  std::optional<ucred> peer_credentials() const { return stream_->peer_credentials(); }

  size_t unsent_bytes() const { return stream_->unsent_bytes(); }
  // Calls and replies of the peer's that have come.
  uint64_t messages_received() const { return messages_received_; }
  size_t calls_unanswered() const { return calls_unanswered_; }
  size_t calls_outstanding() const { return outstanding_.size(); }
  // Null: nobody counts. Whoever goes on with a call when the connection has ended keeps it until then.
  const std::shared_ptr<MemoryAccount>& memory() const { return options_.memory; }
  // Memory beyond that of requests, for answers that grow while they wait: more, or (negative) less again.
  void hold_more(ptrdiff_t bytes);
  // Whether there is memory for so much more.
  bool has_room(size_t bytes) const { return !options_.memory || options_.memory->has_room(bytes); }
  // Has back-pressure stopped the reading?
  bool paused() const { return paused_; }

 private:
  friend class Responder;
  struct OutstandingCall {
    ReplyHandler done;
    EventLoop::TimerId timer = 0;
  };

  // A client's way to TLS, until it is done.
  struct TlsStart {
    enum class Step : uint8_t { kProbe, kHandshake, kProof };
    Step step = Step::kProbe;
    uint32_t xid = 0;  // of the probe
    std::unique_ptr<TlsSession> session;
    uint32_t program = 0;
    uint32_t version = 0;
    Milliseconds timeout{0};
    std::function<void(Result<>)> done;
  };

  Connection(EventLoop& loop, std::shared_ptr<MessageStream> stream, ConnectionOptions options,
             CallHandler on_call, CloseHandler on_close);
  void start_stream();
  void deliver(Bytes message);
  void deliver_call(Bytes message);
  void deliver_reply(Bytes message, uint32_t xid);
  void place_call(const CallHeader& header, Bytes arguments, Milliseconds timeout, ReplyHandler done);
  uint32_t next_xid();
  bool admit(const CallHeader& header);
  void answer_probe(const CallHeader& header);
  void take_probe_answer(ByteSpan message);
  void secured();
  void finish_tls(Result<> result);
  void await_tls(Milliseconds patience);
  void answer(const ReplyHeader& header, std::shared_ptr<const Bytes> body, size_t request_bytes);
  void answered(size_t request_bytes);
  void send(Bytes head, std::shared_ptr<const Bytes> body);
  void sent();
  void part_came();
  void count_memory();
  void update_pause();
  void finish_call(uint32_t xid, Result<Reply> result);
  void fail_with(Error reason);

  EventLoop& loop_;
  std::shared_ptr<MessageStream> stream_;
  ConnectionOptions options_;
  std::shared_ptr<const CallHandler> on_call_;
  std::vector<CloseHandler> on_close_;
  SecuredHandler on_secured_;
  std::unique_ptr<TlsStart> tls_start_;  // null: nothing of the kind is under way
  bool tls_begun_ = false;               // by a probe of the peer
  EventLoop::TimerId tls_timer_ = 0;
  bool open_ = true;
  bool closing_ = false;
  bool paused_ = false;
  bool paused_by_own_ = false;  // limits, not those of the budget

  uint64_t messages_received_ = 0;
  size_t calls_unanswered_ = 0;
  size_t held_bytes_ = 0;  // of requests without an answer, and by hold_more()
  uint32_t next_xid_ = 1;
  std::unordered_map<uint32_t, OutstandingCall> outstanding_;
};

}  // namespace pnfsrdma::rpc
