// SPDX-License-Identifier: Apache-2.0
#include "shared/rdma/iwarp/tcp_stream.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <bit>
#include <cerrno>

#include "shared/base/sync.h"

namespace pnfsrdma::rdma::iwarp {
namespace {

// Longest sleep in one recv(2): a wake-up per second costs nothing and lets nearly every deadline share one
// SO_RCVTIMEO.
constexpr Milliseconds kLongestSleep{1024};
// SO_RCVTIMEO counts in the kernel's ticks; below a few of them ppoll(2) is the exact way.
constexpr Milliseconds kShortestSleep{16};

// Seconds of silence before a peer is asked whether it is there, and between two such questions.
constexpr int kKeepAliveIdle = 60;
constexpr int kKeepAlivePause = 10;
// Of a peer that owes acknowledgements, those of the questions too.
constexpr unsigned kPeerPatienceMs = 120'000;

Milliseconds left_until(SteadyTime deadline) {
  SteadyTime now = steady_now();
  if (deadline <= now) return Milliseconds(0);
  return std::min(
      std::chrono::ceil<Milliseconds>(std::min(deadline - now, SteadyTime::duration(std::chrono::hours(1)))),
      Milliseconds(3600 * 1000));
}

ssize_t result_of(ssize_t count) {
  if (count >= 0) return count;
  return errno == EWOULDBLOCK || errno == EINTR ? -EAGAIN : -errno;
}

msghdr message_of(std::span<const iovec> pieces) {
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(pieces.data());
  message.msg_iovlen = pieces.size();
  return message;
}

}  // namespace

bool wait_for_events(int fd, short events, SteadyTime deadline, int wake) {
  for (;;) {
    pollfd entries[2] = {{fd, events, 0}, {wake, POLLIN, 0}};  // a negative fd is skipped
    Milliseconds left = left_until(deadline);
    int count = ::poll(entries, 2, static_cast<int>(left.count()));
    if (count > 0) return true;
    if (count == 0 && left_until(deadline) == Milliseconds(0)) return false;
    if (count < 0 && errno != EINTR) return true;  // let the next call on the socket report it
  }
}

Result<std::unique_ptr<Stream>> TcpStream::make(FileDescriptor socket) {
  FileDescriptor wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake) return std::unexpected(Error::from_errno("eventfd"));
  return std::unique_ptr<Stream>(new TcpStream(std::move(socket), std::move(wake)));
}

ssize_t TcpStream::receive(std::span<const iovec> into) {
  msghdr message = message_of(into);
  return result_of(::recvmsg(socket_.get(), &message, MSG_DONTWAIT));
}

// One system call when the deadline is far: SO_RCVTIMEO bounds the sleep and is only set again when the
// distance to the deadline falls into another power of two.
ssize_t TcpStream::receive_blocking(MutableByteSpan into, SteadyTime deadline) {
  Milliseconds left = left_until(deadline);
  if (left < kShortestSleep) {
    if (!wait_ready(true, false, deadline)) return -EAGAIN;
    return result_of(::recv(socket_.get(), into.data(), into.size(), MSG_DONTWAIT));
  }
  auto bounded = static_cast<uint64_t>(std::min(left, kLongestSleep).count());
  set_receive_timeout(Milliseconds(std::bit_floor(bounded)));
  return result_of(::recv(socket_.get(), into.data(), into.size(), 0));
}

void TcpStream::set_receive_timeout(Milliseconds timeout) {
  if (timeout == receive_timeout_) return;
  timeval value{timeout.count() / 1000, (timeout.count() % 1000) * 1000};
  ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &value, sizeof(value));
  receive_timeout_ = timeout;
}

ssize_t TcpStream::send(std::span<const iovec> from) {
  msghdr message = message_of(from);
  return result_of(::sendmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL));
}

bool TcpStream::wait_ready(bool readable, bool writable, SteadyTime deadline) {
  int events = (readable ? POLLIN : 0) | (writable ? POLLOUT : 0);
  bool ready =
      wait_for_events(socket_.get(), static_cast<short>(events), deadline, readable ? wake_.get() : -1);
  uint64_t count;
  if (readable) static_cast<void>(!::read(wake_.get(), &count, sizeof(count)));
  return ready;
}

void TcpStream::wake() {
  uint64_t one = 1;
  static_cast<void>(!::write(wake_.get(), &one, sizeof(one)));
}

void TcpStream::finish_sending() {
  ::shutdown(socket_.get(), SHUT_WR);
}
void TcpStream::shut_down() {
  ::shutdown(socket_.get(), SHUT_RDWR);
}

int TcpStream::fd() const {
  std::lock_guard lock(epoll_mutex_);
  if (epoll_) return epoll_.get();
  FileDescriptor epoll(::epoll_create1(EPOLL_CLOEXEC));
  epoll_event event{};
  event.events = EPOLLIN | EPOLLRDHUP | (watching_writable_ ? EPOLLOUT : 0u);
  // Out of descriptors: the socket itself tells all but the writability.
  if (!epoll || ::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, socket_.get(), &event) != 0) return socket_.get();
  epoll_ = std::move(epoll);
  return epoll_.get();
}

void TcpStream::watch_writable(bool on) {
  std::lock_guard lock(epoll_mutex_);
  if (on == watching_writable_) return;
  watching_writable_ = on;
  if (!epoll_) return;
  epoll_event event{};
  event.events = EPOLLIN | EPOLLRDHUP | (on ? EPOLLOUT : 0u);
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, socket_.get(), &event);
}

std::string TcpStream::peer() const {
  return peer_address(socket_.get()).to_string();
}

bool SocketAddress::loopback() const {
  if (family() == AF_INET) {
    const auto* address = reinterpret_cast<const sockaddr_in*>(&storage);
    return (ntohl(address->sin_addr.s_addr) >> 24) == 127;
  }
  if (family() != AF_INET6) return false;
  const in6_addr& address = reinterpret_cast<const sockaddr_in6*>(&storage)->sin6_addr;
  return IN6_IS_ADDR_LOOPBACK(&address) || (IN6_IS_ADDR_V4MAPPED(&address) && address.s6_addr[12] == 127);
}

std::string SocketAddress::to_string() const {
  char host[NI_MAXHOST];
  char port[NI_MAXSERV];
  if (::getnameinfo(get(), size, host, sizeof(host), port, sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV) !=
      0) {
    return "unknown";
  }
  if (family() == AF_INET6) return "[" + std::string(host) + "]:" + port;
  return std::string(host) + ":" + port;
}

Result<std::vector<SocketAddress>> resolve(const std::string& address, bool passive) {
  size_t colon = address.rfind(':');
  if (colon == std::string::npos || colon + 1 == address.size()) {
    return fail(EINVAL, "\"" + address + "\" is not host:port");
  }
  std::string host = address.substr(0, colon);
  std::string port = address.substr(colon + 1);
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | (passive ? AI_PASSIVE : 0);
  addrinfo* list = nullptr;
  int error = ::getaddrinfo(host.empty() ? nullptr : host.c_str(), port.c_str(), &hints, &list);
  if (error != 0) return fail(EHOSTUNREACH, "resolving " + address + ": " + ::gai_strerror(error));
  Owned<addrinfo, ::freeaddrinfo> owned(list);
  std::vector<SocketAddress> result;
  for (const addrinfo* entry = list; entry != nullptr; entry = entry->ai_next) {
    SocketAddress& one = result.emplace_back();
    one.size = std::min<socklen_t>(entry->ai_addrlen, sizeof(one.storage));
    std::memcpy(&one.storage, entry->ai_addr, one.size);
  }
  return result;
}

SocketAddress peer_address(int socket) {
  SocketAddress result;
  result.size = sizeof(result.storage);
  if (::getpeername(socket, reinterpret_cast<sockaddr*>(&result.storage), &result.size) != 0) result = {};
  return result;
}

SocketAddress local_address(int socket) {
  SocketAddress result;
  result.size = sizeof(result.storage);
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&result.storage), &result.size) != 0) result = {};
  return result;
}

void set_connection_options(int socket, int buffer_bytes) {
  int on = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  ::setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
  ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPIDLE, &kKeepAliveIdle, sizeof(kKeepAliveIdle));
  ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPINTVL, &kKeepAlivePause, sizeof(kKeepAlivePause));
  ::setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &kPeerPatienceMs, sizeof(kPeerPatienceMs));
  if (buffer_bytes > 0) {
    ::setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &buffer_bytes, sizeof(buffer_bytes));
    ::setsockopt(socket, SOL_SOCKET, SO_RCVBUF, &buffer_bytes, sizeof(buffer_bytes));
  }
}

Result<FileDescriptor> make_socket(int family, int buffer_bytes) {
  FileDescriptor socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket) return std::unexpected(Error::from_errno("socket"));
  set_connection_options(socket.get(), buffer_bytes);
  return socket;
}

Result<FileDescriptor> connect_tcp(const std::string& address, int buffer_bytes, SteadyTime deadline) {
  TRY_ASSIGN(std::vector<SocketAddress> targets, resolve(address, false));
  int number = ETIMEDOUT;
  for (const SocketAddress& target : targets) {
    Milliseconds left = left_until(deadline);
    if (left == Milliseconds(0)) break;
    TRY_ASSIGN(FileDescriptor socket, make_socket(target.family(), buffer_bytes));
    // connect(2) gives up by SO_SNDTIMEO; what is left of it afterwards is harmless, as sends never block.
    timeval timeout{left.count() / 1000, (left.count() % 1000) * 1000};
    ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
    if (::connect(socket.get(), target.get(), target.size) == 0) return socket;
    number = errno == EINPROGRESS || errno == EAGAIN ? ETIMEDOUT : errno;
  }
  return fail(number, "connecting to " + address);
}

}  // namespace pnfsrdma::rdma::iwarp
