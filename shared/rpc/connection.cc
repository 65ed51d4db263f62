// SPDX-License-Identifier: Apache-2.0
#include "shared/rpc/connection.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "shared/base/check.h"
#include "shared/rpc/socket_address.h"
#include "shared/xdr/codec.h"

namespace pnfsrdma::rpc {
namespace {

// Record mark and header of a message whose body has `body_size` bytes.
template <typename Header>
Bytes encode_head(const Header& header, size_t body_size) {
  Bytes head;
  head.reserve(64);
  head.resize(kMarkSize);
  xdr::Encoder encoder(head);
  xdr::encode(encoder, header);
  std::byte mark[kMarkSize];
  write_record_mark(mark, head.size() - kMarkSize + body_size);
  std::copy(std::begin(mark), std::end(mark), head.begin());
  return head;
}

// No delay for small records, and an end for peers that have vanished: idle ones by keepalive, ones that owe
// us acknowledgements by the user timeout. A failure is not worth the connection.
void tune_tcp(int fd) {
  const int on = 1;
  const unsigned patience_ms = kPeerPatienceMs;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &patience_ms, sizeof patience_ms);
}

}  // namespace

ConnectionPointer Connection::start(EventLoop& loop, FileDescriptor socket, ConnectionOptions options,
                                    CallHandler on_call, CloseHandler on_close) {
  CHECK(socket);
  ConnectionPointer connection(
      new Connection(loop, std::move(socket), options, std::move(on_call), std::move(on_close)));
  connection->watch();
  return connection;
}

Connection::Connection(EventLoop& loop, FileDescriptor socket, ConnectionOptions options, CallHandler on_call,
                       CloseHandler on_close)
    : loop_(loop),
      socket_(std::move(socket)),
      options_(options),
      on_call_(std::make_shared<const CallHandler>(std::move(on_call))),
      reader_(options.record_bytes_max) {
  this->on_close(std::move(on_close));
  const int flags = fcntl(socket_.get(), F_GETFL);
  CHECK(flags >= 0 && fcntl(socket_.get(), F_SETFL, flags | O_NONBLOCK) == 0);
  const Result<SocketAddress> address = SocketAddress::peer_of(socket_.get());
  is_unix_ = address && address->is_unix();
  // A peer that has gone already has no address; the first read will say so.
  peer_ = !address ? "gone" : is_unix_ ? "unix" : address->to_string();
  if (!is_unix_) tune_tcp(socket_.get());
}

// Still open only when the loop itself is going: nothing left to unwatch or to tell.
Connection::~Connection() = default;

// The loop's handler keeps the connection alive until fail_with() unwatches it.
void Connection::watch() {
  interest_ = EPOLLIN;
  loop_.watch(socket_.get(), interest_,
              [self = shared_from_this()](uint32_t events) { self->handle_events(events); });
}

void Connection::handle_events(uint32_t events) {
  if (events & EPOLLOUT) flush();
  if (!is_open()) return;
  if (!paused_ && !closing_) return read_some();
  // Nothing is being read, but a dead peer must be noticed: epoll reports these unasked, again and again.
  if (events & (EPOLLHUP | EPOLLERR)) fail_with(Error(ECONNRESET, "the peer closed the connection"));
}

// --- input
// -----------------------------------------------------------------------------------------------------------

void Connection::read_some() {
  // Stopped for back-pressure or going: nothing is read, but a dead peer must still be noticed (EPOLLHUP
  // comes always).
  if (paused_ || closing_) {
    std::byte probe;
    const ssize_t got = recv(socket_.get(), &probe, 1, MSG_PEEK);
    if (got < 0 && errno != EAGAIN && errno != EINTR) fail_with(Error::from_errno("recv"));
    if (got == 0) fail_with(Error(ECONNRESET, "the peer closed the connection"));
    return;
  }
  for (size_t total = 0; is_open() && !paused_ && !closing_ && total < kReadBytesPerTurn;) {
    const MutableByteSpan space = reader_.space();
    const ssize_t got = recv(socket_.get(), space.data(), space.size(), 0);
    if (got <= 0) {
      // filled() either way: it takes back the room that space() has made in a record.
      const int error = errno;
      const bool kept = reader_.filled(0);
      CHECK(kept);
      if (got == 0) return fail_with(Error(ECONNRESET, "the peer closed the connection"));
      if (error != EAGAIN && error != EINTR) fail_with(Error(error, "recv"));
      return;
    }
    const bool understood = reader_.filled(static_cast<size_t>(got));
    deliver_records();
    if (!understood) return fail_with(Error(EMSGSIZE, "a record is longer than allowed"));
    total += static_cast<size_t>(got);
    if (static_cast<size_t>(got) < space.size()) return;  // drained: saves the recv that would say EAGAIN
  }
}

void Connection::deliver_records() {
  if (delivering_) return;
  delivering_ = true;
  while (is_open() && !closing_ && !paused_) {
    std::optional<Bytes> record = reader_.next();
    if (!record) break;
    deliver(std::move(*record));
    update_interest();
  }
  delivering_ = false;
}

void Connection::deliver(Bytes record) {
  const std::optional<MessageStart> start = peek_message(record);
  if (!start) return fail_with(Error(EBADMSG, "a record is no RPC message"));
  if (start->type == MessageType::kReply) return deliver_reply(std::move(record), start->xid);
  deliver_call(std::move(record));
}

void Connection::deliver_call(Bytes record) {
  xdr::Decoder decoder(record);
  std::expected<CallHeader, CallRefused> header = decode_call(decoder);
  if (!header) {
    if (!header.error().reply) return fail_with(Error(EBADMSG, "a record is no RPC call"));
    return send({encode_head(*header.error().reply, 0), nullptr});
  }
  const uint32_t xid = header->xid;
  if (!*on_call_) {
    return send({encode_head(ReplyHeader::refusal(xid, AcceptStatus::kProgramUnavailable), 0), nullptr});
  }
  IncomingCall call;
  call.header = std::move(*header);
  call.arguments = decoder.rest();
  call.record = std::move(record);  // the bytes stay where they are: `arguments` remains valid
  ++calls_unanswered_;
  const auto handler = on_call_;  // keeps it: the handler may replace itself
  (*handler)(shared_from_this(), std::move(call), Responder(weak_from_this(), xid));
}

void Connection::deliver_reply(Bytes record, uint32_t xid) {
  if (!outstanding_.contains(xid)) return;  // late: it has timed out
  xdr::Decoder decoder(record);
  ReplyHeader header;
  if (!xdr::decode(decoder, header)) return fail_with(Error(EBADMSG, "a malformed RPC reply"));
  if (!header.successful()) return finish_call(xid, std::unexpected(header.to_error()));
  Reply reply;
  reply.results = decoder.rest();
  reply.record = std::move(record);
  finish_call(xid, std::move(reply));
}

// --- calls of ours
// ---------------------------------------------------------------------------------------------------

void Connection::call(uint32_t program, uint32_t version, uint32_t procedure, const OpaqueAuth& credential,
                      Bytes arguments, Milliseconds timeout, ReplyHandler done) {
  if (!is_open() || closing_ || outstanding_.size() >= options_.calls_outstanding_max) {
    const Error error = is_open() && !closing_ ? Error(EAGAIN, "too many calls outstanding to " + peer_)
                                               : Error(ECONNRESET, "no connection to " + peer_);
    loop_.after(Milliseconds(0), [done = std::move(done), error] { done(std::unexpected(error)); });
    return;
  }
  while (outstanding_.contains(next_xid_)) ++next_xid_;
  const uint32_t xid = next_xid_++;
  const auto timer = loop_.after(timeout, [weak = weak_from_this(), xid] {
    const ConnectionPointer self = weak.lock();
    if (self) self->finish_call(xid, fail(ETIMEDOUT, "no answer from " + self->peer_));
  });
  outstanding_.emplace(xid, OutstandingCall{std::move(done), timer});
  const CallHeader header{xid, program, version, procedure, credential, {}};
  Bytes head = encode_head(header, arguments.size());
  send({std::move(head), std::make_shared<const Bytes>(std::move(arguments))});
}

void Connection::finish_call(uint32_t xid, Result<Reply> result) {
  auto found = outstanding_.extract(xid);
  if (found.empty()) return;
  loop_.cancel(found.mapped().timer);
  found.mapped().done(std::move(result));
}

// --- answers
// ---------------------------------------------------------------------------------------------------------

void Connection::answer(const ReplyHeader& header, std::shared_ptr<const Bytes> body) {
  if (!is_open()) return;
  Bytes head = encode_head(header, body ? body->size() : 0);
  send({std::move(head), std::move(body)});
  answered();
}

void Connection::answered() {
  CHECK(calls_unanswered_ > 0);
  --calls_unanswered_;
  update_interest();
}

Responder& Responder::operator=(Responder&& other) noexcept {
  if (this != &other) {
    if (!connection_.expired()) refuse(AcceptStatus::kSystemError);
    connection_ = std::exchange(other.connection_, {});
    xid_ = other.xid_;
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
    connection->answer(header, std::move(body));
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
    if (connection->is_open()) connection->answered();
  }
}

// --- output
// ----------------------------------------------------------------------------------------------------------

// Queues; what one turn of the loop has brought leaves together at its end.
void Connection::send(Outgoing outgoing) {
  unsent_bytes_ += outgoing.head.size() + (outgoing.body ? outgoing.body->size() : 0);
  outgoing_.push_back(std::move(outgoing));
  update_interest();
  if (flush_scheduled_ || wants_write_) return;
  flush_scheduled_ = true;
  loop_.at_turn_end([weak = weak_from_this()] {
    const ConnectionPointer self = weak.lock();
    if (!self) return;
    self->flush_scheduled_ = false;
    self->flush();
  });
}

void Connection::flush() {
  if (!is_open()) return;
  while (!outgoing_.empty() && flush_once()) {
  }
  if (!is_open()) return;
  wants_write_ = !outgoing_.empty();
  if (closing_ && outgoing_.empty()) return close();
  update_interest();
}

// One sendmsg(2). False when the kernel takes no more for now, or the connection is gone.
bool Connection::flush_once() {
  std::array<iovec, kSendVectorsMax> vectors;
  size_t count = 0;
  size_t skip = sent_of_front_;
  const auto add = [&](const Bytes& bytes) {
    const size_t skipped = std::min(skip, bytes.size());
    skip -= skipped;
    if (skipped == bytes.size()) return;
    vectors[count++] = {const_cast<std::byte*>(bytes.data()) + skipped, bytes.size() - skipped};
  };
  for (const Outgoing& outgoing : outgoing_) {
    if (count + 2 > vectors.size()) break;
    add(outgoing.head);
    if (outgoing.body) add(*outgoing.body);
  }
  msghdr message{};
  message.msg_iov = vectors.data();
  message.msg_iovlen = count;
  const ssize_t sent = sendmsg(socket_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent >= 0) {
    consume(static_cast<size_t>(sent));
    return true;
  }
  if (errno != EAGAIN && errno != EINTR) fail_with(Error::from_errno("sendmsg"));
  return false;
}

void Connection::consume(size_t sent) {
  unsent_bytes_ -= sent;
  sent_of_front_ += sent;
  while (!outgoing_.empty()) {
    const Outgoing& front = outgoing_.front();
    const size_t size = front.head.size() + (front.body ? front.body->size() : 0);
    if (sent_of_front_ < size) break;
    sent_of_front_ -= size;
    outgoing_.pop_front();
  }
}

// --- back-pressure and the end
// ---------------------------------------------------------------------------------------

// Stops reading above a limit, goes on below half of it: no toggling at the limit.
void Connection::update_interest() {
  if (!is_open()) return;
  const auto above = [this](size_t part) {
    return unsent_bytes_ > options_.unsent_bytes_max / part ||
           calls_unanswered_ >= std::max<size_t>(options_.calls_unanswered_max / part, 1);
  };
  const bool was_paused = std::exchange(paused_, above(paused_ ? 2 : 1));
  const uint32_t wanted =
      (paused_ || closing_ ? 0u : uint32_t{EPOLLIN}) | (wants_write_ ? uint32_t{EPOLLOUT} : 0u);
  if (wanted != interest_) {
    interest_ = wanted;
    loop_.change(socket_.get(), wanted);
  }
  // Records read before the pause wait in the reader. Not from here: the caller may be in the middle of
  // something.
  if (was_paused && !paused_ && reader_.has_record()) {
    loop_.at_turn_end([weak = weak_from_this()] {
      if (const ConnectionPointer self = weak.lock()) self->deliver_records();
    });
  }
}

void Connection::close() {
  fail_with(Error(ECONNABORTED, "closed by this side"));
}

void Connection::close_when_sent() {
  if (!is_open() || closing_) return;
  closing_ = true;
  if (outgoing_.empty()) return close();
  update_interest();
}

void Connection::fail_with(Error reason) {
  if (!is_open()) return;
  const ConnectionPointer self = shared_from_this();
  loop_.unwatch(socket_.get());
  socket_.reset();
  outgoing_.clear();
  unsent_bytes_ = 0;
  auto outstanding = std::exchange(outstanding_, {});
  for (auto& [xid, call] : outstanding) {
    loop_.cancel(call.timer);
    call.done(fail(ECONNRESET, "connection to " + peer_ + " lost: " + reason.what()));
  }
  on_call(nullptr);
  for (const CloseHandler& handler : std::exchange(on_close_, {})) handler(self, reason);
}

void Connection::on_call(CallHandler handler) {
  on_call_ = std::make_shared<const CallHandler>(std::move(handler));
}

void Connection::on_close(CloseHandler handler) {
  if (handler) on_close_.push_back(std::move(handler));
}

std::optional<ucred> Connection::peer_credentials() const {
  if (!is_unix_ || !is_open()) return std::nullopt;
  ucred credentials{};
  socklen_t size = sizeof credentials;
  if (getsockopt(socket_.get(), SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) return std::nullopt;
  return credentials;
}

}  // namespace pnfsrdma::rpc
