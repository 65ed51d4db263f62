// SPDX-License-Identifier: Apache-2.0
#include "shared/http/peer_stream.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <utility>

#include "shared/base/sync.h"

namespace pnfsrdma::http {
namespace {

constexpr Milliseconds kLookWhetherItStops{100};
// New keys cost more time than a KiB of data. Records without data are paid for by data, but for the first 64 of them.
constexpr size_t kCostWithoutData = 1024;
constexpr size_t kOwedMax = 64 * kCostWithoutData;

int size_for_tls(size_t size) {
  return static_cast<int>(std::min<size_t>(size, INT_MAX));
}

}  // namespace

std::string address_of_peer(int socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (getpeername(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) return "unknown";
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

PeerStream::PeerStream(FileDescriptor socket, SSL_CTX* context, const std::atomic<bool>& stopping)
    : socket_(std::move(socket)),
      tls_(context == nullptr ? nullptr : SSL_new(context)),
      plain_(context == nullptr),
      stopping_(stopping),
      address_(address_of_peer(socket_.get())) {
  fcntl(socket_.get(), F_SETFL, fcntl(socket_.get(), F_GETFL) | O_NONBLOCK);
  if (!tls_) return;
  SSL_set_fd(tls_.get(), socket_.get());
  SSL_set_mode(tls_.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  // Behind each record without data it is our turn, or nobody would look at the deadline.
  SSL_clear_mode(tls_.get(), SSL_MODE_AUTO_RETRY);
  SSL_set_msg_callback(tls_.get(), &PeerStream::record_seen);
  SSL_set_msg_callback_arg(tls_.get(), this);
}

void PeerStream::record_seen(int written, int, int type, const void*, size_t, SSL* tls, void* self) {
  if (written != 0 || type != SSL3_RT_HEADER || !SSL_is_init_finished(tls)) return;
  static_cast<PeerStream*>(self)->owed_ += kCostWithoutData;
}

PeerStream::~PeerStream() {
  // One attempt: nobody waits for a peer's goodbye.
  if (tls_ && SSL_is_init_finished(tls_.get())) SSL_shutdown(tls_.get());
  ERR_clear_error();
}

bool PeerStream::wait(short events, SteadyTime deadline) const {
  while (!stopping_) {
    const auto left = std::chrono::ceil<Milliseconds>(deadline - steady_now());
    if (left <= Milliseconds(0)) return false;
    pollfd waited{.fd = socket_.get(), .events = events, .revents = 0};
    const int ready = poll(&waited, 1, static_cast<int>(std::min(left, kLookWhetherItStops).count()));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
  }
  return false;
}

short PeerStream::wanted(ssize_t result, short plain) const {
  if (plain_) return errno == EAGAIN || errno == EINTR ? plain : 0;
  switch (SSL_get_error(tls_.get(), static_cast<int>(result))) {
    case SSL_ERROR_WANT_READ:
      return POLLIN;
    case SSL_ERROR_WANT_WRITE:
      return POLLOUT;
    default:
      return 0;
  }
}

bool PeerStream::handshake(SteadyTime deadline) {
  if (plain_) return true;
  while (tls_) {
    ERR_clear_error();
    const int result = SSL_accept(tls_.get());
    if (result == 1) return true;
    const short events = wanted(result, 0);
    if (events == 0 || !wait(events, deadline)) return false;
  }
  return false;
}

ssize_t PeerStream::receive(char* buffer, size_t size, SteadyTime deadline) {
  for (;;) {
    ERR_clear_error();
    const size_t owed = owed_;
    const ssize_t got =
        tls_ ? SSL_read(tls_.get(), buffer, size_for_tls(size)) : recv(socket_.get(), buffer, size, 0);
    if (got > 0) {
      if (owed_ > owed) owed_ -= kCostWithoutData;  // the last record had data
      owed_ -= std::min(owed_, static_cast<size_t>(got));
      return got;
    }
    if (got == 0 && plain_) return 0;
    if (owed_ > kOwedMax) return -1;
    const short events = wanted(got, POLLIN);
    if (events == 0 || !wait(events, deadline)) return -1;
  }
}

bool PeerStream::send_all(const char* bytes, size_t size, SteadyTime deadline) {
  for (size_t sent = 0; sent < size;) {
    ERR_clear_error();
    const ssize_t put = tls_ ? SSL_write(tls_.get(), bytes + sent, size_for_tls(size - sent))
                             : send(socket_.get(), bytes + sent, size - sent, MSG_NOSIGNAL);
    if (put > 0) {
      sent += static_cast<size_t>(put);
      continue;
    }
    const short events = wanted(put, POLLOUT);
    if (events == 0 || !wait(events, deadline)) return false;
  }
  return true;
}

void PeerStream::end_sending() {
  if (tls_) SSL_shutdown(tls_.get());
  ::shutdown(socket_.get(), SHUT_WR);
}

void PeerStream::get_remote_ip_and_port(std::string& ip, int& port) const {
  ip = address_;
  port = 0;
}

void PeerStream::get_local_ip_and_port(std::string& ip, int& port) const {
  ip.clear();
  port = 0;
}

}  // namespace pnfsrdma::http
