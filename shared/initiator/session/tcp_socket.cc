// SPDX-License-Identifier: Apache-2.0
#include "shared/initiator/session/tcp_socket.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <cerrno>

#include "shared/base/sync.h"
#include "shared/rpc/dial.h"

namespace pnfsrdma::initiator {
namespace {

void set_number(int fd, int level, int name, int value) {
  // Best effort: without the option the connection works, only less promptly.
  (void)::setsockopt(fd, level, name, &value, sizeof value);
}

void set_slice(int fd, int name) {
  const timeval slice{.tv_sec = SessionSocket::kSlice.count() / 1000, .tv_usec = 0};
  (void)::setsockopt(fd, SOL_SOCKET, name, &slice, sizeof slice);
}

bool would_block(int number) {
  return number == EAGAIN || number == EWOULDBLOCK || number == EINTR;
}

}  // namespace

Result<std::shared_ptr<SessionSocket>> SessionTcpSocket::connect(const rpc::SocketAddress& address,
                                                                 Milliseconds timeout,
                                                                 size_t record_bytes_max,
                                                                 Counters& counters) {
  TRY_ASSIGN(FileDescriptor socket, rpc::dial_and_wait(address, timeout, rpc::LocalPort::kReserved));
  return std::make_shared<SessionTcpSocket>(std::move(socket), record_bytes_max, counters);
}

SessionTcpSocket::SessionTcpSocket(FileDescriptor socket, size_t record_bytes_max, Counters& counters)
    : socket_(std::move(socket)), counters_(counters), reader_(record_bytes_max) {
  const int fd = socket_.get();
  // Blocking with a time limit: the waiting thread sleeps in recv() itself, no poll() in front of it.
  (void)::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) & ~O_NONBLOCK);
  set_slice(fd, SO_RCVTIMEO);
  set_slice(fd, SO_SNDTIMEO);
  set_number(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  // A dead host is noticed while nothing is on its way, too.
  set_number(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_number(fd, IPPROTO_TCP, TCP_KEEPIDLE, 10);
  set_number(fd, IPPROTO_TCP, TCP_KEEPINTVL, 5);
  set_number(fd, IPPROTO_TCP, TCP_KEEPCNT, 3);
}

Result<> SessionTcpSocket::send(ByteSpan record, Milliseconds patience) {
  const std::lock_guard lock(send_mutex_);
  SteadyTime progress = steady_now();
  while (!record.empty()) {
    counters_.sends.fetch_add(1, std::memory_order_relaxed);
    const ssize_t sent = ::send(socket_.get(), record.data(), record.size(), MSG_NOSIGNAL);
    if (sent > 0) {
      record = record.subspan(static_cast<size_t>(sent));
      if (!record.empty()) progress = steady_now();
      continue;
    }
    if (!would_block(errno)) return std::unexpected(Error::from_errno("send to the MDS"));
    if (steady_now() - progress > patience) {
      return fail(ETIMEDOUT, "send to the MDS: it takes no bytes");
    }
  }
  return {};
}

Result<> SessionTcpSocket::receive(bool wait, std::vector<Bytes>& records) {
  const MutableByteSpan space = reader_.space();
  counters_.receives.fetch_add(1, std::memory_order_relaxed);
  const ssize_t count = ::recv(socket_.get(), space.data(), space.size(), wait ? 0 : MSG_DONTWAIT);
  if (count == 0) return fail(ECONNRESET, "the MDS closed the connection");
  if (count < 0) {
    if (!would_block(errno)) return std::unexpected(Error::from_errno("receive from the MDS"));
    return {};
  }
  if (!reader_.filled(static_cast<size_t>(count))) {
    return fail(EPROTO, "the MDS sent a record longer than the session allows");
  }
  while (auto record = reader_.next()) records.push_back(std::move(*record));
  return {};
}

void SessionTcpSocket::shut_down() {
  (void)::shutdown(socket_.get(), SHUT_RDWR);
}

}  // namespace pnfsrdma::initiator
