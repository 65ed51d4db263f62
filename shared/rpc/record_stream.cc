// SPDX-License-Identifier: Apache-2.0
#include "shared/rpc/record_stream.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
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
  if (!paused_ && !waits_for_turn_) return reader_.mid_long_record() ? read_at_own_turn() : read_some(0);
  // Nothing is being read, but a dead peer must be noticed: epoll reports these unasked, again and again. A read that
  // waits for its turn notices it behind what came before.
  if (paused_ && events & (EPOLLHUP | EPOLLERR))
    fail_with(Error(ECONNRESET, "the peer closed the connection"));
}

// --- input ---

// The next part of a long record waits for a turn of its own, and the socket is not watched meanwhile: among a
// thousand that send much, one that sends little waits for one part, not for a thousand.
void RecordStream::read_at_own_turn() {
  if (std::exchange(waits_for_turn_, true)) return;
  update_interest();
  loop_.at_own_turn([weak = weak_from_this()] {
    const auto self = weak.lock();
    if (!self) return;
    self->waits_for_turn_ = false;
    if (!self->paused_) self->read_some(kLongRecordBytesPerTurn);
    self->update_interest();
  });
}

// Of a long record at most `long_share`.
void RecordStream::read_some(size_t long_share) {
  // Records that wait for their turn come first: they would only become more.
  for (size_t total = 0; is_open() && !paused_ && !reader_.has_record() && total < kReadBytesPerTurn;) {
    const size_t share = reader_.mid_long_record() && long_share > total ? long_share - total : SIZE_MAX;
    const MutableByteSpan space = reader_.space(std::min(read_bytes_max_, share));
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
    if (understood && !reader_.has_record()) {
      if (const auto handlers = handlers_.lock(); handlers && handlers->on_part) handlers->on_part();
    }
    if (!delivery_scheduled_) deliver_records();
    if (!understood)
      return fail_with(Error(EMSGSIZE, "a record is longer than allowed, or an empty fragment"));
    if (static_cast<size_t>(got) < space.size()) return;  // drained: saves the recv that would say EAGAIN
    total += static_cast<size_t>(got);
    if (is_open() && !paused_ && reader_.mid_long_record() && total >= long_share) return read_at_own_turn();
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
  if (reader_.has_record()) deliver_next_turn();
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
  unsent_bytes_ += outgoing.size();
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

void RecordStream::flush() {
  if (!is_open()) return;
  const auto handlers = handlers_.lock();
  const size_t before = unsent_bytes_;
  while (!outgoing_.empty() && flush_once()) {
  }
  if (!is_open()) return;
  wants_write_ = !outgoing_.empty();
  update_interest();
  if (handlers && unsent_bytes_ < before) handlers->on_sent();
}

// One sendmsg(2). False when the kernel takes no more for now, or the connection is gone.
bool RecordStream::flush_once() {
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
    return true;
  }
  if (errno != EAGAIN && errno != EINTR) fail_with(Error::from_errno("sendmsg"));
  return false;
}

void RecordStream::consume(size_t sent) {
  unsent_bytes_ -= sent;
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
  unsent_bytes_ = outgoing_held_ = 0;
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
