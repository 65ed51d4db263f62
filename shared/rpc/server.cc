// SPDX-License-Identifier: Apache-2.0
#include "shared/rpc/server.h"

#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "shared/rpc/dial.h"

namespace pnfsrdma::rpc {
namespace {

constexpr int kBacklog = 512;
constexpr int kAcceptsPerTurn = 16;
// When descriptors have run out, accepting anew at once would spin.
constexpr Milliseconds kPauseOnShortage{100};

// A socket file nobody listens on is left from a process that died: bind(2) would fail on it for ever.
Result<> remove_stale_socket(const SocketAddress& address) {
  const std::string path = address.host();
  struct stat status{};
  if (lstat(path.c_str(), &status) != 0) return {};
  if (!S_ISSOCK(status.st_mode)) return fail(EEXIST, "listen on " + path + " (not a socket)");
  const Result<FileDescriptor> answer = dial_and_wait(address, Milliseconds(1000));
  if (answer) return fail(EADDRINUSE, "listen on " + path);
  if (answer.error().number() != ECONNREFUSED) return std::unexpected(answer.error());
  if (unlink(path.c_str()) != 0 && errno != ENOENT) {
    return std::unexpected(Error::from_errno("remove stale socket " + path));
  }
  return {};
}

Result<FileDescriptor> open_socket(const SocketAddress& address, mode_t mode) {
  FileDescriptor socket(::socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket) return std::unexpected(Error::from_errno("socket"));
  if (address.is_unix()) {
    TRY(remove_stale_socket(address));
    // Until listen(2) nobody can connect, so that the mode is right before the first client.
  } else {
    const int on = 1;
    setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  }
  if (bind(socket.get(), address.data(), address.size()) != 0) {
    return std::unexpected(Error::from_errno("bind to " + address.to_string()));
  }
  if (address.is_unix() && chmod(address.host().c_str(), mode) != 0) {
    return std::unexpected(Error::from_errno("chmod " + address.host()));
  }
  if (::listen(socket.get(), kBacklog) != 0) {
    return std::unexpected(Error::from_errno("listen on " + address.to_string()));
  }
  return socket;
}

}  // namespace

Result<std::unique_ptr<Listener>> Listener::listen(EventLoop& loop, const SocketAddress& address,
                                                   Service service, mode_t mode) {
  TRY_ASSIGN(FileDescriptor socket, open_socket(address, mode));
  TRY_ASSIGN(SocketAddress bound, SocketAddress::local_of(socket.get()));
  return std::unique_ptr<Listener>(new Listener(loop, std::move(socket), bound, std::move(service)));
}

Listener::Listener(EventLoop& loop, FileDescriptor socket, SocketAddress address, Service service)
    : loop_(loop), socket_(std::move(socket)), address_(address), service_(std::move(service)) {
  loop_.watch(socket_.get(), EPOLLIN, [this](uint32_t) { accept_some(); });
}

Listener::~Listener() {
  loop_.cancel(pause_timer_);
  loop_.unwatch(socket_.get());
  if (address_.is_unix()) unlink(address_.host().c_str());
}

void Listener::accept_some() {
  for (int i = 0; i < kAcceptsPerTurn; ++i) {
    FileDescriptor socket(accept4(socket_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (socket) {
      adopt(std::move(socket));
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      return pause();
    } else if (errno == EAGAIN) {
      return;
    }
    // Anything else is the error of a client that has gone already (accept(2)).
  }
}

void Listener::adopt(FileDescriptor socket) {
  if (*connections_ >= service_.connections_max) return;
  ConnectionOptions options = service_.options;
  if (service_.memory != nullptr) {
    const Result<SocketAddress> peer = SocketAddress::peer_of(socket.get());
    options.memory = service_.memory->open(!peer || peer->is_unix() ? "unix" : peer->to_string());
    if (!options.memory) return;
  }
  ++*connections_;
  const ConnectionPointer connection =
      Connection::start(loop_, std::move(socket), options, service_.on_call,
                        [count = connections_, on_close = service_.on_close](const ConnectionPointer& closed,
                                                                             const Error& reason) {
                          --*count;
                          if (on_close) on_close(closed, reason);
                        });
  connection->on_secured(service_.on_secured);
  if (service_.on_accept) service_.on_accept(connection);
}

void Listener::pause() {
  loop_.change(socket_.get(), 0);
  pause_timer_ = loop_.after(kPauseOnShortage, [this] { loop_.change(socket_.get(), EPOLLIN); });
}

}  // namespace pnfsrdma::rpc
