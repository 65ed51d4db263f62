// SPDX-License-Identifier: Apache-2.0
#include "shared/rpc/connection.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "shared/base/check.h"
#include "shared/rpc/record_stream.h"
#include "shared/xdr/codec.h"

namespace pnfsrdma::rpc {
namespace {

template <typename Header>
Bytes encode_head(const Header& header) {
  Bytes head;
  head.reserve(64);
  xdr::Encoder encoder(head);
  xdr::encode(encoder, header);
  return head;
}

}  // namespace

ConnectionPointer Connection::start(EventLoop& loop, FileDescriptor socket, ConnectionOptions options,
                                    CallHandler on_call, CloseHandler on_close) {
  auto stream = std::make_shared<RecordStream>(loop, std::move(socket), options.record_bytes_max);
  return start(loop, std::move(stream), options, std::move(on_call), std::move(on_close));
}

ConnectionPointer Connection::start(EventLoop& loop, std::shared_ptr<MessageStream> stream,
                                    ConnectionOptions options, CallHandler on_call, CloseHandler on_close) {
  ConnectionPointer connection(
      new Connection(loop, std::move(stream), options, std::move(on_call), std::move(on_close)));
  connection->start_stream();
  return connection;
}

Connection::Connection(EventLoop& loop, std::shared_ptr<MessageStream> stream, ConnectionOptions options,
                       CallHandler on_call, CloseHandler on_close)
    : loop_(loop),
      stream_(std::move(stream)),
      options_(options),
      on_call_(std::make_shared<const CallHandler>(std::move(on_call))) {
  this->on_close(std::move(on_close));
}

// Still open only when the loop itself is going: nothing left to unwatch or to tell.
Connection::~Connection() = default;

// The stream's handlers, which the loop owns, keep the connection alive until fail_with() closes the stream.
void Connection::start_stream() {
  const ConnectionPointer self = shared_from_this();
  if (options_.memory) {
    stream_->count_in(options_.memory);
    options_.memory->handle({.on_relief =
                                 [weak = weak_from_this()] {
                                   if (const auto live = weak.lock()) live->update_pause();
                                 },
                             .on_victim =
                                 [weak = weak_from_this()] {
                                   if (const auto live = weak.lock())
                                     live->fail_with(
                                         Error(ENOBUFS, "its memory was needed, or it made no progress"));
                                 }});
  }
  stream_->start({.on_message = [self](Bytes message) { self->deliver(std::move(message)); },
                  .on_sent = [self] { self->sent(); },
                  .on_part = [self] { self->part_came(); },
                  .on_failed = [self](Error reason) { self->fail_with(std::move(reason)); },
                  .on_secured = [self] { self->secured(); }});
  if (options_.tls && options_.tls_required) await_tls(options_.tls_patience);
}

// --- input ---

void Connection::deliver(Bytes message) {
  ++messages_received_;
  if (options_.memory) options_.memory->completed();
  const std::optional<MessageStart> start = peek_message(message);
  if (!start) return fail_with(Error(EBADMSG, "a record is not an RPC message"));
  if (start->type == MessageType::kReply) {
    deliver_reply(std::move(message), start->xid);
  } else {
    deliver_call(std::move(message));
  }
  update_pause();
}

void Connection::deliver_call(Bytes message) {
  xdr::Decoder decoder(message);
  std::expected<CallHeader, CallRefused> header = decode_call(decoder);
  if (!header) {
    if (!header.error().reply) return fail_with(Error(EBADMSG, "a record is not an RPC call"));
    return send(encode_head(*header.error().reply), nullptr);
  }
  const uint32_t xid = header->xid;
  if (!admit(*header)) return;
  if (!*on_call_) {
    return send(encode_head(ReplyHeader::refusal(xid, AcceptStatus::kProgramUnavailable)), nullptr);
  }
  IncomingCall call;
  call.header = std::move(*header);
  call.arguments = decoder.rest();
  call.record = std::move(message);  // the bytes stay where they are: `arguments` remains valid
  ++calls_unanswered_;
  const size_t held = call.record.capacity() + kCallCost;
  held_bytes_ += held;
  count_memory();
  const auto handler = on_call_;  // keeps it: the handler may replace itself
  (*handler)(shared_from_this(), std::move(call), Responder(weak_from_this(), xid, held));
}

void Connection::deliver_reply(Bytes message, uint32_t xid) {
  if (tls_start_ && tls_start_->step == TlsStart::Step::kProbe) return take_probe_answer(message);
  if (!outstanding_.contains(xid)) return;  // late: it has timed out
  xdr::Decoder decoder(message);
  ReplyHeader header;
  if (!xdr::decode(decoder, header)) return fail_with(Error(EBADMSG, "a malformed RPC reply"));
  if (!header.successful()) return finish_call(xid, std::unexpected(header.to_error()));
  Reply reply;
  reply.results = decoder.rest();
  reply.record = std::move(message);
  finish_call(xid, std::move(reply));
}

// --- calls of ours ---

void Connection::call(uint32_t program, uint32_t version, uint32_t procedure, const OpaqueAuth& credential,
                      Bytes arguments, Milliseconds timeout, ReplyHandler done) {
  if (!is_open() || closing_ || tls_start_ || outstanding_.size() >= options_.calls_outstanding_max) {
    const Error error = !is_open() || closing_ ? Error(ECONNRESET, "no connection to " + peer())
                        : tls_start_           ? Error(EAGAIN, "no TLS yet with " + peer())
                                               : Error(EAGAIN, "too many calls outstanding to " + peer());
    loop_.after(Milliseconds(0), [done = std::move(done), error] { done(std::unexpected(error)); });
    return;
  }
  place_call({next_xid(), program, version, procedure, credential, {}}, std::move(arguments), timeout,
             std::move(done));
}

uint32_t Connection::next_xid() {
  while (outstanding_.contains(next_xid_)) ++next_xid_;
  return next_xid_++;
}

void Connection::place_call(const CallHeader& header, Bytes arguments, Milliseconds timeout,
                            ReplyHandler done) {
  const uint32_t xid = header.xid;
  const auto timer = loop_.after(timeout, [weak = weak_from_this(), xid] {
    const ConnectionPointer self = weak.lock();
    if (!self) return;
    if (self->open_) self->stream_->forget_reply(xid);
    self->finish_call(xid, fail(ETIMEDOUT, "no answer from " + self->peer()));
  });
  outstanding_.emplace(xid, OutstandingCall{std::move(done), timer});
  send(encode_head(header), std::make_shared<const Bytes>(std::move(arguments)));
}

void Connection::finish_call(uint32_t xid, Result<Reply> result) {
  auto found = outstanding_.extract(xid);
  if (found.empty()) return;
  loop_.cancel(found.mapped().timer);
  found.mapped().done(std::move(result));
}

// --- answers ---

void Connection::answer(const ReplyHeader& header, std::shared_ptr<const Bytes> body, size_t request_bytes) {
  if (!is_open()) return;
  send(encode_head(header), std::move(body));
  answered(request_bytes);
}

void Connection::answered(size_t request_bytes) {
  CHECK(calls_unanswered_ > 0);
  --calls_unanswered_;
  held_bytes_ -= request_bytes;
  update_pause();
}

Responder& Responder::operator=(Responder&& other) noexcept {
  if (this != &other) {
    if (!connection_.expired()) refuse(AcceptStatus::kSystemError);
    connection_ = std::exchange(other.connection_, {});
    xid_ = other.xid_;
    request_bytes_ = other.request_bytes_;
  }
  return *this;
}

Responder::~Responder() {
  if (!connection_.expired()) refuse(AcceptStatus::kSystemError);
}

bool Responder::connected() const {
  const ConnectionPointer connection = connection_.lock();
  return connection && connection->is_open();
}

void Responder::answer(const ReplyHeader& header, std::shared_ptr<const Bytes> body) {
  if (const ConnectionPointer connection = std::exchange(connection_, {}).lock()) {
    connection->answer(header, std::move(body), request_bytes_);
  }
}

void Responder::reply(Bytes results) {
  reply(std::make_shared<const Bytes>(std::move(results)));
}
void Responder::reply(std::shared_ptr<const Bytes> results) {
  answer(ReplyHeader::success(xid_), std::move(results));
}
void Responder::refuse(AcceptStatus status) {
  answer(ReplyHeader::refusal(xid_, status), nullptr);
}
void Responder::refuse_version(VersionRange supported) {
  answer(ReplyHeader::program_mismatch(xid_, supported), nullptr);
}
void Responder::refuse_auth(AuthStatus status) {
  answer(ReplyHeader::auth_error(xid_, status), nullptr);
}
void Responder::drop() {
  if (const ConnectionPointer connection = std::exchange(connection_, {}).lock()) {
    if (!connection->is_open()) return;
    connection->stream_->forget_call(xid_);
    connection->answered(request_bytes_);
  }
}

// --- TLS (RFC 9289) ---

namespace {

// Zero-length credential and verifier, and a call without effect (RFC 9289, 4.1).
bool is_probe(const CallHeader& header) {
  return header.procedure == 0 && header.credential.body.empty() && header.verifier.body.empty() &&
         header.verifier.flavor == AuthFlavor::kNone;
}

}  // namespace

// False: the call has been answered here.
bool Connection::admit(const CallHeader& header) {
  if (options_.tls && header.credential.flavor == AuthFlavor::kTls) {
    answer_probe(header);
    return false;
  }
  // A client that is on its way to TLS takes no calls from whoever it is before that (RFC 9289, 5.1.1).
  const bool wanted = options_.tls_required || (tls_start_ && tls_start_->step == TlsStart::Step::kProbe);
  if (!wanted || tls_peer() != nullptr) return true;
  send(encode_head(ReplyHeader::auth_error(header.xid, AuthStatus::kTooWeak)), nullptr);
  return false;
}

// A second probe is refused, and one that would leave calls without their answers.
void Connection::answer_probe(const CallHeader& header) {
  const auto refuse = [&](AuthStatus why) {
    send(encode_head(ReplyHeader::auth_error(header.xid, why)), nullptr);
  };
  if (!is_probe(header) || tls_begun_ || calls_unanswered_ > 0 || !outstanding_.empty())
    return refuse(AuthStatus::kBadCredential);
  auto session = options_.tls->begin({});
  if (!session) return refuse(AuthStatus::kFailed);
  tls_begun_ = true;
  ReplyHeader reply = ReplyHeader::success(header.xid);
  reply.body.get_if<ReplyStatus::kAccepted>()->verifier.body =
      xdr::Opaque<kAuthBytesMax>(as_bytes(kStartTls));
  stream_->send(encode_head(reply), nullptr);
  if (!stream_->start_tls(std::move(*session)))
    return fail_with(Error(EBADMSG, "bytes came between the probe for TLS and its handshake"));
  if (!options_.tls_required) await_tls(options_.tls_patience);
}

void Connection::start_tls(TlsEndpoint& tls, const std::string& peer, uint32_t program, uint32_t version,
                           Milliseconds timeout, std::function<void(Result<>)> done) {
  CHECK(is_open() && !tls_start_ && outstanding_.empty());
  tls_start_ = std::make_unique<TlsStart>();
  tls_start_->xid = next_xid();
  tls_start_->program = program;
  tls_start_->version = version;
  tls_start_->timeout = timeout;
  tls_start_->done = std::move(done);
  await_tls(timeout);
  auto session = tls.begin(peer);
  if (!session) {
    loop_.at_next_turn([weak = weak_from_this(), error = session.error()] {
      if (const ConnectionPointer self = weak.lock()) self->fail_with(error);
    });
    return;
  }
  tls_start_->session = std::move(*session);
  const CallHeader probe{tls_start_->xid, program, version, 0, {AuthFlavor::kTls, {}}, {}};
  send(encode_head(probe), nullptr);
}

// STARTTLS counts whatever the call itself came to (RFC 9289, 4.1).
void Connection::take_probe_answer(ByteSpan message) {
  xdr::Decoder decoder(message);
  ReplyHeader header;
  if (!xdr::decode(decoder, header) || header.xid != tls_start_->xid)
    return fail_with(Error(EPROTO, "no answer to the probe for TLS"));
  const AcceptedReply* const accepted = header.body.get_if<ReplyStatus::kAccepted>();
  if (accepted == nullptr || accepted->verifier.flavor != AuthFlavor::kNone ||
      as_text(accepted->verifier.body) != kStartTls)
    return fail_with(Error(ENOTSUP, peer() + " does not offer TLS (RFC 9289)"));
  tls_start_->step = TlsStart::Step::kHandshake;
  if (!stream_->start_tls(std::move(tls_start_->session)))
    fail_with(Error(EPROTO, "bytes came between the answer to the probe for TLS and its handshake"));
}

void Connection::secured() {
  if (!tls_start_) {
    loop_.cancel(tls_timer_);
    if (on_secured_) on_secured_(shared_from_this());
    return update_pause();
  }
  tls_start_->step = TlsStart::Step::kProof;
  place_call({next_xid(), tls_start_->program, tls_start_->version, 0, {}, {}}, {}, tls_start_->timeout,
             [weak = weak_from_this()](Result<Reply> reply) {
               const ConnectionPointer self = weak.lock();
               if (self) self->finish_tls(reply ? Result<>() : std::unexpected(reply.error()));
             });
}

void Connection::finish_tls(Result<> result) {
  if (!tls_start_) return;
  loop_.cancel(tls_timer_);
  const auto started = std::exchange(tls_start_, nullptr);
  const ConnectionPointer self = shared_from_this();
  if (!result) fail_with(result.error());
  started->done(std::move(result));
}

void Connection::await_tls(Milliseconds patience) {
  tls_timer_ = loop_.after(patience, [weak = weak_from_this(), patience] {
    const ConnectionPointer self = weak.lock();
    if (!self) return;
    self->fail_with(Error(ETIMEDOUT, "no TLS within " + std::to_string(patience.count()) + " ms"));
  });
}

void Connection::reassess_tls() {
  if (!is_open()) return;
  if (const auto still = stream_->reassess_tls(); !still) fail_with(still.error());
}

// --- back-pressure and the end ---

void Connection::send(Bytes head, std::shared_ptr<const Bytes> body) {
  stream_->send(std::move(head), std::move(body));
  update_pause();
}

void Connection::sent() {
  if (closing_ && unsent_bytes() == 0) return close();
  if (options_.memory) unsent_bytes() == 0 ? options_.memory->completed() : options_.memory->moved();
  update_pause();
}

void Connection::part_came() {
  if (!options_.memory) return;
  options_.memory->moved();
  update_pause();
}

void Connection::hold_more(ptrdiff_t bytes) {
  held_bytes_ += static_cast<size_t>(bytes);
  update_pause();
}

void Connection::count_memory() {
  if (!options_.memory) return;
  const size_t of_stream = unsent_bytes() + stream_->received_bytes();
  options_.memory->hold(MemoryBudget::kConnectionCost + of_stream + held_bytes_, of_stream,
                        stream_->mid_message());
  stream_->limit_reads(options_.memory->has_room(MemoryBudget::kUsualRead) ? SIZE_MAX
                                                                           : MemoryBudget::kSmallRead);
}

// Stops reading above a limit, goes on below half of it: no toggling at the limit.
void Connection::update_pause() {
  if (!is_open()) return;
  count_memory();
  const auto above = [this](size_t part) {
    return unsent_bytes() > options_.unsent_bytes_max / part ||
           calls_unanswered_ >= std::max<size_t>(options_.calls_unanswered_max / part, 1);
  };
  const bool own_limit = above(paused_by_own_ ? 2 : 1);
  paused_by_own_ = own_limit;
  // Asked in any case: whoever may not read waits for it, and shows that memory is short.
  const bool no_memory = options_.memory && !options_.memory->may_read();
  const bool was_paused = std::exchange(paused_, own_limit || no_memory);
  if (paused_ == was_paused || closing_) return;
  paused_ ? stream_->pause() : stream_->resume();
}

void Connection::close() {
  fail_with(Error(ECONNABORTED, "closed by this side"));
}

void Connection::close_when_sent() {
  if (!is_open() || closing_) return;
  closing_ = true;
  if (unsent_bytes() == 0) return close();
  stream_->pause();
}

void Connection::fail_with(Error reason) {
  if (!is_open()) return;
  const ConnectionPointer self = shared_from_this();
  open_ = false;
  loop_.cancel(tls_timer_);
  stream_->close();
  finish_tls(std::unexpected(reason));
  if (options_.memory) {
    options_.memory->handle({});
    options_.memory->hold(held_bytes_, 0, false);
  }
  auto outstanding = std::exchange(outstanding_, {});
  for (auto& [xid, call] : outstanding) {
    loop_.cancel(call.timer);
    call.done(fail(ECONNRESET, "connection to " + peer() + " lost: " + reason.what()));
  }
  on_call(nullptr);
  on_secured_ = nullptr;
  for (const CloseHandler& handler : std::exchange(on_close_, {})) handler(self, reason);
}

void Connection::on_call(CallHandler handler) {
  on_call_ = std::make_shared<const CallHandler>(std::move(handler));
}

void Connection::on_close(CloseHandler handler) {
  if (handler) on_close_.push_back(std::move(handler));
}

}  // namespace pnfsrdma::rpc
