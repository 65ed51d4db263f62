// SPDX-License-Identifier: Apache-2.0
#include "server/console/connection_stream.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "server/console/http_limits.h"
#include "shared/base/sync.h"

namespace pnfsrdma::console {

namespace {

constexpr size_t kReadAhead = 4096;
constexpr size_t kGatheredMax = 64 << 10;
// How often a wait looks whether the server stops.
constexpr Milliseconds kLook{250};

std::string numeric(const sockaddr_storage& address) {
  char text[INET6_ADDRSTRLEN] = {};
  if (address.ss_family == AF_INET) {
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in&>(address).sin_addr, text, sizeof text);
  } else if (address.ss_family == AF_INET6) {
    const in6_addr& six = reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
    if (IN6_IS_ADDR_V4MAPPED(&six)) {
      inet_ntop(AF_INET, six.s6_addr + 12, text, sizeof text);
    } else {
      inet_ntop(AF_INET6, &six, text, sizeof text);
    }
  }
  return text;
}

}  // namespace

Peer peer_of(int socket) {
  Peer peer;
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) == 0 &&
      address.ss_family == AF_UNIX) {
    peer.local_socket = true;
    peer.loopback = true;
    ucred credentials{};
    size = sizeof credentials;
    if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &size) == 0) peer.uid = credentials.uid;
    return peer;
  }
  size = sizeof address;
  peer.address = "unknown";
  if (getpeername(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) return peer;
  peer.address = numeric(address);
  peer.loopback = peer.address.starts_with("127.") || peer.address == "::1";
  return peer;
}

ConnectionStream::ConnectionStream(FileDescriptor socket, SSL_CTX* context, const std::atomic<bool>& stopping)
    : socket_(std::move(socket)), stopping_(stopping), peer_(peer_of(socket_.get())) {
  fcntl(socket_.get(), F_SETFL, fcntl(socket_.get(), F_GETFL) | O_NONBLOCK);
  if (context == nullptr) return;
  tls_.reset(SSL_new(context));
  if (tls_) SSL_set_fd(tls_.get(), socket_.get());
}

ConnectionStream::~ConnectionStream() {
  // One attempt: nobody waits for a peer's goodbye.
  if (tls_ && SSL_is_init_finished(tls_.get())) SSL_shutdown(tls_.get());
  ERR_clear_error();
}

bool ConnectionStream::wait(short events, SteadyTime deadline) const {
  while (!stopping_) {
    const auto left = std::chrono::ceil<Milliseconds>(deadline - steady_now());
    if (left <= Milliseconds(0)) return false;
    pollfd waited{.fd = socket_.get(), .events = events, .revents = 0};
    const int ready = poll(&waited, 1, static_cast<int>(std::min(left, kLook).count()));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
  }
  return false;
}

short ConnectionStream::wanted(int result) const {
  switch (SSL_get_error(tls_.get(), result)) {
    case SSL_ERROR_WANT_READ:
      return POLLIN;
    case SSL_ERROR_WANT_WRITE:
      return POLLOUT;
    default:
      return 0;
  }
}

bool ConnectionStream::handshake() {
  if (!tls_) return false;
  const auto deadline = steady_now() + kHandshakeDeadline;
  while (true) {
    ERR_clear_error();
    const int result = SSL_accept(tls_.get());
    if (result == 1) return true;
    const short events = wanted(result);
    if (events == 0 || !wait(events, deadline)) return false;
  }
}

bool ConnectionStream::wait_for_request() {
  request_bytes_ = buffered_.size() - consumed_;
  const bool begun = consumed_ < buffered_.size() || (tls_ && SSL_pending(tls_.get()) > 0) ||
                     wait(POLLIN, steady_now() + kIdleDeadline);
  request_deadline_ = steady_now() + kRequestDeadline;
  return begun;
}

void ConnectionStream::drain() {
  if (tls_) SSL_shutdown(tls_.get());
  ::shutdown(socket_.get(), SHUT_WR);
  const auto deadline = steady_now() + kDrainDeadline;
  char unread[kReadAhead];
  for (size_t drained = 0; drained < kDrainBytesMax && wait(POLLIN, deadline);) {
    const ssize_t got = recv(socket_.get(), unread, sizeof unread, 0);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) return;
    if (got > 0) drained += static_cast<size_t>(got);
  }
}

bool ConnectionStream::is_readable() const {
  return consumed_ < buffered_.size() || wait(POLLIN, request_deadline_);
}

bool ConnectionStream::is_writable() const {
  return wait(POLLOUT, steady_now() + kWriteDeadline);
}

ssize_t ConnectionStream::read(char* buffer, size_t size) {
  while (consumed_ >= buffered_.size()) {
    // "100 Continue", which the peer may wait for.
    if (!send_all(gathered_.data(), gathered_.size())) return -1;
    gathered_.clear();
    buffered_.resize(kReadAhead);
    consumed_ = 0;
    ERR_clear_error();
    const ssize_t got = tls_ ? SSL_read(tls_.get(), buffered_.data(), kReadAhead)
                             : recv(socket_.get(), buffered_.data(), kReadAhead, 0);
    buffered_.resize(got > 0 ? static_cast<size_t>(got) : 0);
    if (got > 0) {
      request_bytes_ += buffered_.size();
      if (request_bytes_ > kHeaderBytesMax + kBodyBytesMax) return -1;
      break;
    }
    if (got == 0 && !tls_) return 0;
    const short events = tls_ ? wanted(static_cast<int>(got))
                              : static_cast<short>(errno == EAGAIN || errno == EINTR ? POLLIN : 0);
    if (events == 0 || !wait(events, request_deadline_)) return -1;
  }
  const size_t count = std::min(size, buffered_.size() - consumed_);
  std::memcpy(buffer, buffered_.data() + consumed_, count);
  consumed_ += count;
  return static_cast<ssize_t>(count);
}

ssize_t ConnectionStream::write(const char* bytes, size_t size) {
  if (gathering_ && gathered_.size() + size <= kGatheredMax) {
    gathered_.append(bytes, size);
  } else if (!send_all(gathered_.data(), gathered_.size()) || !send_all(bytes, size)) {
    return -1;
  } else {
    gathered_.clear();
  }
  return static_cast<ssize_t>(size);
}

bool ConnectionStream::release() {
  gathering_ = false;
  const std::string bytes = std::exchange(gathered_, {});
  return send_all(bytes.data(), bytes.size());
}

bool ConnectionStream::send_all(const char* bytes, size_t size) {
  const auto deadline = steady_now() + kWriteDeadline;
  size_t written = 0;
  while (written < size) {
    ERR_clear_error();
    const size_t left = size - written;
    const ssize_t put = tls_ ? SSL_write(tls_.get(), bytes + written, static_cast<int>(left))
                             : send(socket_.get(), bytes + written, left, MSG_NOSIGNAL);
    if (put > 0) {
      written += static_cast<size_t>(put);
      continue;
    }
    const short events = tls_ ? wanted(static_cast<int>(put))
                              : static_cast<short>(errno == EAGAIN || errno == EINTR ? POLLOUT : 0);
    if (events == 0 || !wait(events, deadline)) return false;
  }
  return true;
}

void ConnectionStream::get_remote_ip_and_port(std::string& ip, int& port) const {
  ip = peer_.address;
  port = 0;
}

void ConnectionStream::get_local_ip_and_port(std::string& ip, int& port) const {
  ip.clear();
  port = 0;
}

}  // namespace pnfsrdma::console
