// SPDX-License-Identifier: Apache-2.0
#include "server/console/connection_stream.h"

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
  peer.address = http::address_of_peer(socket);
  peer.loopback = peer.address.starts_with("127.") || peer.address == "::1";
  return peer;
}

ConnectionStream::ConnectionStream(FileDescriptor socket, SSL_CTX* context, const std::atomic<bool>& stopping)
    : PeerStream(std::move(socket), context, stopping), peer_(peer_of(this->socket())) {}

bool ConnectionStream::wait_for_request() {
  request_bytes_ = buffered_.size() - consumed_;
  const bool begun =
      consumed_ < buffered_.size() || has_pending() || wait(POLLIN, steady_now() + kIdleDeadline);
  request_deadline_ = steady_now() + kRequestDeadline;
  return begun;
}

void ConnectionStream::drain() {
  end_sending();
  const auto deadline = steady_now() + kDrainDeadline;
  char unread[kReadAhead];
  for (size_t drained = 0; drained < kDrainBytesMax && wait(POLLIN, deadline);) {
    const ssize_t got = recv(socket(), unread, sizeof unread, 0);
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
  if (consumed_ >= buffered_.size()) {
    // "100 Continue", which the peer may wait for.
    if (!send_now(gathered_.data(), gathered_.size())) return -1;
    gathered_.clear();
    buffered_.resize(kReadAhead);
    consumed_ = 0;
    const ssize_t got = receive(buffered_.data(), kReadAhead, request_deadline_);
    buffered_.resize(got > 0 ? static_cast<size_t>(got) : 0);
    if (got <= 0) return got;
    request_bytes_ += buffered_.size();
    if (request_bytes_ > kHeaderBytesMax + kBodyBytesMax) return -1;
  }
  const size_t count = std::min(size, buffered_.size() - consumed_);
  std::memcpy(buffer, buffered_.data() + consumed_, count);
  consumed_ += count;
  return static_cast<ssize_t>(count);
}

ssize_t ConnectionStream::write(const char* bytes, size_t size) {
  if (gathering_ && gathered_.size() + size <= kGatheredMax) {
    gathered_.append(bytes, size);
  } else if (!send_now(gathered_.data(), gathered_.size()) || !send_now(bytes, size)) {
    return -1;
  } else {
    gathered_.clear();
  }
  return static_cast<ssize_t>(size);
}

bool ConnectionStream::release() {
  gathering_ = false;
  const std::string bytes = std::exchange(gathered_, {});
  return send_now(bytes.data(), bytes.size());
}

bool ConnectionStream::send_now(const char* bytes, size_t size) {
  return send_all(bytes, size, steady_now() + kWriteDeadline);
}

}  // namespace pnfsrdma::console
