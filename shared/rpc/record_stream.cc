// SPDX-License-Identifier: Apache-2.0
#include "shared/rpc/record_stream.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "shared/base/check.h"
#include "shared/rpc/limits.h"
#include "shared/rpc/memory_budget.h"
#include "shared/rpc/socket_address.h"

namespace pnfsrdma::rpc {
namespace {

// No delay for small records, and an end for peers that have vanished: idle ones by keepalive, ones that owe
// us acknowledgements by the user timeout. A failure is not worth the connection.
void tune_tcp(int fd) {
  const int on = 1;
  const unsigned patience_ms = kPeerPatienceMs;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &patience_ms, sizeof patience_ms);
}

// For ciphertext that has just come; for pieces on their way into one TLS record.
std::byte* ciphertext_buffer() {
  thread_local const auto buffer = std::make_unique_for_overwrite<std::byte[]>(kCiphertextAtOnce);
  return buffer.get();
}
std::byte* joining_buffer() {
  thread_local const auto buffer = std::make_unique_for_overwrite<std::byte[]>(kTlsRecordBytes);
  return buffer.get();
}

}  // namespace

RecordStream::RecordStream(EventLoop& loop, FileDescriptor socket, size_t record_bytes_max)
    : loop_(loop), socket_(std::move(socket)), reader_(record_bytes_max) {
  CHECK(socket_);
  const int flags = fcntl(socket_.get(), F_GETFL);
  CHECK(flags >= 0 && fcntl(socket_.get(), F_SETFL, flags | O_NONBLOCK) == 0);
  const Result<SocketAddress> address = SocketAddress::peer_of(socket_.get());
  is_unix_ = address && address->is_unix();
  // A peer that has gone already has no address; the first read will say so.
  peer_ = !address ? "gone" : is_unix_ ? "unix" : address->to_string();
  if (!is_unix_) tune_tcp(socket_.get());
}

// The loop's handler keeps the stream alive, and the handlers with whatever they own, until it is closed or
// has failed, or the loop itself goes.
void RecordStream::start(Handlers handlers) {
  const auto kept = std::make_shared<const Handlers>(std::move(handlers));
  handlers_ = kept;
  interest_ = EPOLLIN;
  loop_.watch(socket_.get(), interest_,
              [self = shared_from_this(), kept](uint32_t events) { self->handle_events(events); });
}

void RecordStream::handle_events(uint32_t events) {
  if (events & EPOLLOUT) flush();
  if (!is_open()) return;
  if (!paused_ && !waits_for_turn_)
    return in_handshake() || reader_.mid_long_record() ? read_at_own_turn() : read_some(0);
  // Nothing is being read, but a dead peer must be noticed: epoll reports these unasked, again and again. A read that
  // waits for its turn notices it behind what came before.
  if (paused_ && events & (EPOLLHUP | EPOLLERR))
    fail_with(Error(ECONNRESET, "the peer closed the connection"));
}

// --- input ---

// The next part of a long record waits for a turn of its own, and the socket is not watched meanwhile: among a
// thousand that send much, one that sends little waits for one part, not for a thousand. The same is true of the steps
// of a TLS handshake, which may take a millisecond.
void RecordStream::read_at_own_turn() {
  if (std::exchange(waits_for_turn_, true)) return;
  update_interest();
  loop_.at_own_turn([weak = weak_from_this()] {
    const auto self = weak.lock();
    if (!self) return;
    self->waits_for_turn_ = false;
    if (!self->paused_) self->in_handshake() ? self->shake_hands() : self->read_some(kLongRecordBytesPerTurn);
    self->update_interest();
  });
}

// Of a long record at most `long_share`.
void RecordStream::read_some(size_t long_share) {
  read_records(long_share);
  read_rest();
}

void RecordStream::read_records(size_t long_share) {
  size_t budget = kReadBytesPerTurn;
  // Records that wait for their turn come first: they would only become more.
  for (size_t total = 0;
       is_open() && !in_handshake() && !paused_ && !reader_.has_record() && total < kReadBytesPerTurn;) {
    const size_t share = reader_.mid_long_record() && long_share > total ? long_share - total : SIZE_MAX;
    const MutableByteSpan space = reader_.space(std::min(read_bytes_max_, share));
    const ssize_t got = receive(space, budget);
    if (got <= 0) {
      // filled() either way: it takes back the room that space() has made in a record.
      const int error = errno;
      const bool kept = reader_.filled(0);
      CHECK(kept);
      if (got == 0) return fail_with(Error(ECONNRESET, "the peer closed the connection"));
      if (error != EAGAIN && error != EINTR) fail_with(failure_ ? *failure_ : Error(error, "recv"));
      return;
    }
    const bool understood = reader_.filled(static_cast<size_t>(got));
    if (understood && !reader_.has_record()) {
      if (const auto handlers = handlers_.lock(); handlers && handlers->on_part) handlers->on_part();
    }
    if (!delivery_scheduled_) deliver_records();
    if (!understood)
      return fail_with(Error(EMSGSIZE, "a record is longer than allowed, or an empty fragment"));
    if (drained_) return;
    total += static_cast<size_t>(got);
    if (is_open() && !paused_ && reader_.mid_long_record() && total >= long_share) return read_at_own_turn();
  }
}

// What the session has already no event tells of, nor that a handshake is to begin.
void RecordStream::read_rest() {
  if (!is_open() || paused_ || reader_.has_record()) return;
  if (in_handshake() || (secured_ && tls_->has_plaintext())) read_at_own_turn();
}

// As recv(2). `budget` is left of what may be taken from the socket in this turn.
ssize_t RecordStream::receive(MutableByteSpan space, size_t& budget) {
  if (tls_) return receive_protected(space, budget);
  const ssize_t got = recv(socket_.get(), space.data(), space.size(), 0);
  // Saves the recv that would say EAGAIN.
  drained_ = got > 0 && static_cast<size_t>(got) < space.size();
  return got;
}

// The same of plaintext: what the session has already, else what the socket has. The budget is one of ciphertext: TLS
// records with a byte each cost far more than that byte.
ssize_t RecordStream::receive_protected(MutableByteSpan space, size_t& budget) {
  ByteSpan came;
  bool drained = false;
  for (;;) {
    const Result<size_t> got = tls_->read(came, space);
    if (!got) {
      failure_ = got.error();
      errno = EPROTO;
      return -1;
    }
    drained_ = drained && !tls_->has_plaintext() && !tls_->ended();
    if (*got > 0 || tls_->ended()) return static_cast<ssize_t>(*got);
    const size_t most = std::min({kCiphertextAtOnce, read_bytes_max_, budget});
    if (drained || most == 0) {
      errno = EAGAIN;
      return -1;
    }
    const ssize_t taken = recv(socket_.get(), ciphertext_buffer(), most, 0);
    if (taken < 0) return -1;
    if (taken == 0) {
      failure_ = Error(ECONNRESET, "the connection was cut: it ended without the end of TLS");
      errno = ECONNRESET;
      return -1;
    }
    came = ByteSpan(ciphertext_buffer(), static_cast<size_t>(taken));
    budget -= came.size();
    drained = came.size() < most;
  }
}

void RecordStream::deliver_records() {
  if (delivering_) return;
  const auto handlers = handlers_.lock();
  if (!handlers) return;
  delivering_ = true;
  for (size_t count = 0; is_open() && !paused_ && count < kMessagesPerTurn; ++count) {
    std::optional<Bytes> record = reader_.next();
    if (!record) break;
    handlers->on_message(std::move(*record));
  }
  delivering_ = false;
  if (is_open() && !paused_ && reader_.has_record()) deliver_next_turn();
}

// One that sends many small requests at once takes its turn with everybody else.
void RecordStream::deliver_next_turn() {
  if (std::exchange(delivery_scheduled_, true)) return;
  loop_.at_next_turn([weak = weak_from_this()] {
    const auto self = weak.lock();
    if (!self) return;
    self->delivery_scheduled_ = false;
    self->deliver_records();
    self->read_rest();
  });
}

void RecordStream::pause() {
  paused_ = true;
  update_interest();
}

// Records read before the pause wait in the reader. Not from here: the caller may be in the middle of
// something.
void RecordStream::resume() {
  paused_ = false;
  update_interest();
  reader_.has_record() ? deliver_next_turn() : read_rest();
}

size_t RecordStream::received_bytes() const {
  return reader_.held_bytes() + (tls_ ? tls_->held_bytes() : 0);
}

bool RecordStream::mid_message() const {
  return reader_.mid_record() || in_handshake() || (tls_ && tls_->mid_record());
}

// --- TLS ---

bool RecordStream::start_tls(std::unique_ptr<TlsSession> session) {
  if (!is_open() || tls_ || reader_.has_record() || reader_.mid_record()) return false;
  tls_ = std::move(session);
  Bytes& output = tls_->output();
  const auto add = [&output](ByteSpan bytes) { output.insert(output.end(), bytes.begin(), bytes.end()); };
  while (!outgoing_.empty()) {
    const ByteSpan rest = rest_of_front();
    add(rest);
    consume(rest.size());
  }
  read_at_own_turn();
  return true;
}

// The client begins; after that each side goes on when something has come.
void RecordStream::shake_hands() {
  const ssize_t got = recv(socket_.get(), ciphertext_buffer(), kTlsRecordBytes, 0);
  if (got == 0) return fail_with(Error(ECONNRESET, "the peer closed the connection in the TLS handshake"));
  if (got < 0 && errno != EAGAIN && errno != EINTR) return fail_with(Error::from_errno("recv"));
  const ByteSpan came(ciphertext_buffer(), got > 0 ? static_cast<size_t>(got) : 0);
  const Result<bool> over = tls_->handshake(came);
  flush();  // what answers the peer, or the alert that says why not
  if (!is_open()) return;
  if (!over) return fail_with(over.error());
  const auto handlers = handlers_.lock();
  if (!handlers) return;
  if (!*over) {
    if (!came.empty() && handlers->on_part) handlers->on_part();
    return;
  }
  secured_ = true;
  if (handlers->on_secured) handlers->on_secured();
  flush();
  read_rest();
}

// --- output ---

void RecordStream::send(Bytes head, std::shared_ptr<const Bytes> body) {
  if (!is_open()) return;
  Outgoing& outgoing = outgoing_.emplace_back();
  outgoing.head = std::move(head);
  outgoing.body = std::move(body);
  std::byte mark[kMarkSize];
  write_record_mark(mark, outgoing.size() - kMarkSize);
  std::copy(std::begin(mark), std::end(mark), outgoing.mark.begin());
  outgoing_held_ += outgoing.held();
  if (flush_scheduled_ || wants_write_) return;
  flush_scheduled_ = true;
  loop_.at_turn_end([weak = weak_from_this()] {
    const auto self = weak.lock();
    if (!self) return;
    self->flush_scheduled_ = false;
    self->flush();
  });
}

bool RecordStream::has_output() const {
  if (in_handshake() || outgoing_.empty()) return tls_ && tls_->output().size() > output_sent_;
  return true;
}

void RecordStream::flush() {
  if (!is_open()) return;
  const auto handlers = handlers_.lock();
  size_t sent = 0;
  while (has_output() && (!tls_ || sent < kEncryptedPerTurn)) {
    const size_t now = tls_ ? flush_protected() : flush_once();
    if (now == 0) break;
    sent += now;
  }
  if (!is_open()) return;
  wants_write_ = has_output();
  update_interest();
  if (handlers && sent > 0) handlers->on_sent();
}

// One sendmsg(2). 0 when the kernel takes no more for now, or the connection is gone.
size_t RecordStream::flush_once() {
  std::array<iovec, kSendVectorsMax> vectors;
  size_t count = 0;
  size_t skip = sent_of_front_;
  const auto add = [&](ByteSpan bytes) {
    const size_t skipped = std::min(skip, bytes.size());
    skip -= skipped;
    if (skipped == bytes.size()) return;
    vectors[count++] = {const_cast<std::byte*>(bytes.data()) + skipped, bytes.size() - skipped};
  };
  for (const Outgoing& outgoing : outgoing_) {
    if (count + 3 > vectors.size()) break;
    add(outgoing.mark);
    add(outgoing.head);
    if (outgoing.body) add(*outgoing.body);
  }
  msghdr message{};
  message.msg_iov = vectors.data();
  message.msg_iovlen = count;
  const ssize_t sent = sendmsg(socket_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent >= 0) {
    consume(static_cast<size_t>(sent));
    return static_cast<size_t>(sent);
  }
  if (errno != EAGAIN && errno != EINTR) fail_with(Error::from_errno("sendmsg"));
  return 0;
}

// The same through the session: one send(2) of what it has encrypted.
size_t RecordStream::flush_protected() {
  Bytes& output = tls_->output();
  if (output.size() == output_sent_ && secured_) {
    if (const auto encrypted = encrypt_some(); !encrypted) {
      fail_with(encrypted.error());
      return 0;
    }
  }
  const ByteSpan rest = ByteSpan(output).subspan(output_sent_);
  const ssize_t sent = ::send(socket_.get(), rest.data(), rest.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent < 0) {
    if (errno != EAGAIN && errno != EINTR) fail_with(Error::from_errno("send"));
    return 0;
  }
  output_sent_ += static_cast<size_t>(sent);
  if (output_sent_ == output.size()) {
    output = Bytes();
    output_sent_ = 0;
  }
  return static_cast<size_t>(sent);
}

// Of what is queued: short pieces are joined to whole TLS records, long bodies are encrypted where they are.
Result<> RecordStream::encrypt_some() {
  std::byte* const joined = joining_buffer();
  size_t filled = 0;
  for (size_t total = 0; !outgoing_.empty() && total < kCiphertextAtOnce;) {
    const ByteSpan rest = rest_of_front();
    const ByteSpan part = rest.first(std::min(rest.size(), kTlsRecordBytes - filled));
    if (part.size() == kTlsRecordBytes) {
      TRY(tls_->write(part));
    } else {
      std::memcpy(joined + filled, part.data(), part.size());
      filled += part.size();
    }
    if (filled == kTlsRecordBytes) TRY(tls_->write(ByteSpan(joined, std::exchange(filled, 0))));
    total += part.size();
    consume(part.size());
  }
  if (filled > 0) TRY(tls_->write(ByteSpan(joined, filled)));
  return {};
}

// What has not left of the first message's mark, head or body: the first of them with anything left.
ByteSpan RecordStream::rest_of_front() const {
  const Outgoing& front = outgoing_.front();
  size_t skip = sent_of_front_;
  for (const ByteSpan part : {ByteSpan(front.mark), ByteSpan(front.head)}) {
    if (skip < part.size()) return part.subspan(skip);
    skip -= part.size();
  }
  return ByteSpan(*front.body).subspan(skip);
}

void RecordStream::consume(size_t sent) {
  sent_of_front_ += sent;
  while (!outgoing_.empty() && sent_of_front_ >= outgoing_.front().size()) {
    sent_of_front_ -= outgoing_.front().size();
    outgoing_held_ -= outgoing_.front().held();
    outgoing_.pop_front();
  }
}

// --- the end ---

void RecordStream::update_interest() {
  if (!is_open()) return;
  const uint32_t wanted =
      (paused_ || waits_for_turn_ ? 0u : uint32_t{EPOLLIN}) | (wants_write_ ? uint32_t{EPOLLOUT} : 0u);
  if (wanted == interest_) return;
  interest_ = wanted;
  loop_.change(socket_.get(), wanted);
}

void RecordStream::close() {
  if (!is_open()) return;
  const auto self = shared_from_this();
  if (!handlers_.expired()) loop_.unwatch(socket_.get());
  handlers_.reset();
  end_tls();
  socket_.reset();
  if (outgoing_.size() <= kMessagesFreedAtOnce) {
    outgoing_.clear();
  } else {
    auto tell = memory_ ? memory_->outlive(outgoing_held_) : nullptr;
    const auto unsent =
        std::make_shared<Unsent>(loop_, std::exchange(outgoing_, {}), outgoing_held_, std::move(tell));
    loop_.at_next_turn([unsent] { free_in_turns(unsent); });
  }
  memory_.reset();
  outgoing_held_ = 0;
}

// Says so to the peer (RFC 9289, 5.1.1), if the socket takes it at once.
void RecordStream::end_tls() {
  if (!tls_) return;
  tls_->end();
  const ByteSpan rest = ByteSpan(tls_->output()).subspan(output_sent_);
  if (!rest.empty()) (void)::send(socket_.get(), rest.data(), rest.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  secured_ = false;
  output_sent_ = 0;
  tls_.reset();
}

// 8 MiB of short replies that nobody has read are 45,000 of them, and 5 ms to free; many such peers go at once.
void RecordStream::free_in_turns(const std::shared_ptr<Unsent>& unsent) {
  auto& messages = unsent->messages;
  for (size_t count = 0; count < kMessagesFreedAtOnce && !messages.empty(); ++count) {
    unsent->held -= std::min(unsent->held, messages.front().held());
    messages.pop_front();
  }
  if (unsent->tell) unsent->tell(messages.empty() ? 0 : unsent->held);
  if (!messages.empty()) unsent->loop.at_next_turn([unsent] { free_in_turns(unsent); });
}

void RecordStream::fail_with(Error reason) {
  if (!is_open()) return;
  const auto self = shared_from_this();
  const auto handlers = handlers_.lock();
  close();
  if (handlers) handlers->on_failed(std::move(reason));
}

std::optional<ucred> RecordStream::peer_credentials() const {
  if (!is_unix_ || !is_open()) return std::nullopt;
  ucred credentials{};
  socklen_t size = sizeof credentials;
  if (getsockopt(socket_.get(), SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) return std::nullopt;
  return credentials;
}

}  // namespace pnfsrdma::rpc
