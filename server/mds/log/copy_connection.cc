// SPDX-License-Identifier: Apache-2.0
#include "server/mds/log/copy_connection.h"

#include <fcntl.h>
#include <openssl/err.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <utility>

#include "shared/base/sync.h"
#include "shared/rpc/socket_address.h"

namespace pnfsrdma::mds {
namespace {

constexpr Milliseconds kLookWhetherItStops{100};

std::string address_of_peer(int socket) {
  const auto address = rpc::SocketAddress::peer_of(socket);
  return address ? address->host() : "unknown";
}

int size_for_tls(size_t size) {
  return static_cast<int>(std::min<size_t>(size, INT_MAX));
}

}  // namespace

CopyConnection::CopyConnection(FileDescriptor socket, SSL_CTX* context, const std::atomic<bool>& stopping)
    : socket_(std::move(socket)),
      tls_(SSL_new(context)),
      stopping_(stopping),
      peer_(address_of_peer(socket_.get())),
      request_deadline_(steady_now() + kRequestPatience) {
  fcntl(socket_.get(), F_SETFL, fcntl(socket_.get(), F_GETFL) | O_NONBLOCK);
  if (!tls_) return;
  SSL_set_fd(tls_.get(), socket_.get());
  // Each record that has left is progress.
  SSL_set_mode(tls_.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
}

CopyConnection::~CopyConnection() {
  // One attempt: nobody waits for a peer's goodbye.
  if (tls_ && SSL_is_init_finished(tls_.get())) SSL_shutdown(tls_.get());
  ERR_clear_error();
}

bool CopyConnection::wait(short events, SteadyTime deadline) const {
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

bool CopyConnection::wait_for(int result, SteadyTime deadline) const {
  switch (SSL_get_error(tls_.get(), result)) {
    case SSL_ERROR_WANT_READ:
      return wait(POLLIN, deadline);
    case SSL_ERROR_WANT_WRITE:
      return wait(POLLOUT, deadline);
    default:
      return false;
  }
}

bool CopyConnection::handshake() {
  if (!tls_) return false;
  for (;;) {
    ERR_clear_error();
    const int result = SSL_accept(tls_.get());
    if (result == 1) return true;
    if (!wait_for(result, request_deadline_)) return false;
  }
}

bool CopyConnection::is_readable() const {
  return SSL_pending(tls_.get()) > 0 || wait(POLLIN, request_deadline_);
}

bool CopyConnection::is_writable() const {
  return wait(POLLOUT, steady_now() + kWritePatience);
}

ssize_t CopyConnection::read(char* buffer, size_t size) {
  while (!stopping_ && steady_now() < request_deadline_) {
    ERR_clear_error();
    const int got = SSL_read(tls_.get(), buffer, size_for_tls(size));
    if (got > 0) return got;
    if (!wait_for(got, request_deadline_)) return -1;
  }
  return -1;
}

ssize_t CopyConnection::write(const char* bytes, size_t size) {
  for (size_t written = 0; written < size;) {
    if (stopping_) return -1;
    ERR_clear_error();
    const int put = SSL_write(tls_.get(), bytes + written, size_for_tls(size - written));
    if (put > 0) {
      written += static_cast<size_t>(put);
    } else if (!wait_for(put, steady_now() + kWritePatience)) {
      return -1;
    }
  }
  return static_cast<ssize_t>(size);
}

void CopyConnection::get_remote_ip_and_port(std::string& ip, int& port) const {
  ip = peer_;
  port = 0;
}

void CopyConnection::get_local_ip_and_port(std::string& ip, int& port) const {
  ip.clear();
  port = 0;
}

}  // namespace pnfsrdma::mds
