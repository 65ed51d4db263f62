// SPDX-License-Identifier: Apache-2.0
#include "shared/rpc/dial.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <optional>
#include <utility>

#include "shared/base/random.h"
#include "shared/base/sync.h"

namespace pnfsrdma::rpc {
namespace {

inline constexpr uint16_t kReservedPorts = kReservedPortLast - kReservedPortFirst + 1;

// bind(2) of any address and this port.
bool bind_port(int fd, int family, uint16_t port) {
  sockaddr_in ipv4{};
  ipv4.sin_family = AF_INET;
  ipv4.sin_port = htons(port);
  sockaddr_in6 ipv6{};
  ipv6.sin6_family = AF_INET6;
  ipv6.sin6_port = htons(port);
  return family == AF_INET ? ::bind(fd, reinterpret_cast<const sockaddr*>(&ipv4), sizeof ipv4) == 0
                           : ::bind(fd, reinterpret_cast<const sockaddr*>(&ipv6), sizeof ipv6) == 0;
}

// A socket on its way: connected already, or connecting.
Result<FileDescriptor> start(FileDescriptor socket, const SocketAddress& address, bool& connected) {
  connected = ::connect(socket.get(), address.data(), address.size()) == 0;
  if (connected || errno == EINPROGRESS) return socket;
  return std::unexpected(Error::from_errno("connect to " + address.to_string()));
}

Result<FileDescriptor> make_socket(const SocketAddress& address) {
  FileDescriptor socket(::socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket) return std::unexpected(Error::from_errno("socket"));
  return socket;
}

// From the first port that can be had, beginning anywhere, so that two mounts do not try the same ones. Whoever
// closes first has his port rest for a minute, but only towards the server that it led to: SO_REUSEADDR has
// bind(2) give it to us all the same, and connect(2) tells whether it is free for this server. None: not
// permitted, or none is free.
std::optional<Result<FileDescriptor>> start_reserved(const SocketAddress& address, bool& connected) {
  if (address.is_unix()) return std::nullopt;
  SystemRandom random;
  const uint32_t first = random.next_u32() % kReservedPorts;
  for (uint32_t i = 0; i < kReservedPorts; ++i) {
    TRY_ASSIGN(FileDescriptor socket, make_socket(address));
    constexpr int kYes = 1;
    setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &kYes, sizeof kYes);
    const uint32_t port = kReservedPortFirst + (first + i) % kReservedPorts;
    if (!bind_port(socket.get(), address.family(), static_cast<uint16_t>(port))) {
      if (errno == EADDRINUSE) continue;
      return std::nullopt;
    }
    auto started = start(std::move(socket), address, connected);
    if (started || started.error().number() != EADDRNOTAVAIL) return started;
  }
  return std::nullopt;
}

Result<FileDescriptor> begin_connect(const SocketAddress& address, LocalPort port, bool& connected) {
  if (port == LocalPort::kReserved) {
    if (auto started = start_reserved(address, connected)) return *std::move(started);
  }
  TRY_ASSIGN(FileDescriptor socket, make_socket(address));
  return start(std::move(socket), address, connected);
}

Result<> outcome_of(int fd, const SocketAddress& address) {
  int error = 0;
  socklen_t size = sizeof error;
  if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
  if (error != 0) return fail(error, "connect to " + address.to_string());
  return {};
}

// One connect(2) under way in the loop. The loop's handlers share it; finish() is its end.
struct Dial {
  EventLoop& loop;
  SocketAddress address;
  FileDescriptor socket;
  std::function<void(Result<FileDescriptor>)> done;
  EventLoop::TimerId timer = 0;

  void finish(Result<> outcome) {
    if (!done) return;
    loop.unwatch(socket.get());
    loop.cancel(timer);
    const auto call = std::exchange(done, nullptr);
    if (outcome) {
      call(std::move(socket));
    } else {
      socket.reset();
      call(std::unexpected(std::move(outcome).error()));
    }
  }
};

}  // namespace

void dial(EventLoop& loop, const SocketAddress& address, Milliseconds timeout,
          std::function<void(Result<FileDescriptor>)> done) {
  bool connected = false;
  Result<FileDescriptor> socket = begin_connect(address, LocalPort::kAny, connected);
  if (!socket || connected) {
    loop.after(Milliseconds(0), [done = std::move(done),
                                 result = std::make_shared<Result<FileDescriptor>>(std::move(socket))] {
      done(std::move(*result));
    });
    return;
  }
  auto state = std::make_shared<Dial>(Dial{loop, address, std::move(*socket), std::move(done)});
  state->timer = loop.after(
      timeout, [state] { state->finish(fail(ETIMEDOUT, "connect to " + state->address.to_string())); });
  loop.watch(state->socket.get(), EPOLLOUT,
             [state](uint32_t) { state->finish(outcome_of(state->socket.get(), state->address)); });
}

Result<FileDescriptor> dial_and_wait(const SocketAddress& address, Milliseconds timeout, LocalPort port) {
  bool connected = false;
  TRY_ASSIGN(FileDescriptor socket, begin_connect(address, port, connected));
  if (connected) return socket;
  const auto deadline = steady_now() + timeout;
  for (;;) {
    const auto left = std::chrono::ceil<Milliseconds>(deadline - steady_now());
    pollfd wait{.fd = socket.get(), .events = POLLOUT, .revents = 0};
    const int ready = poll(&wait, 1, static_cast<int>(std::max(left, Milliseconds(0)).count()));
    if (ready < 0 && errno == EINTR) continue;
    if (ready < 0) return std::unexpected(Error::from_errno("poll"));
    if (ready == 0) return fail(ETIMEDOUT, "connect to " + address.to_string());
    TRY(outcome_of(socket.get(), address));
    return socket;
  }
}

}  // namespace pnfsrdma::rpc
