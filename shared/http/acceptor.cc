// SPDX-License-Identifier: Apache-2.0
#include "shared/http/acceptor.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <system_error>
#include <utility>

#include "shared/http/peer_stream.h"

namespace pnfsrdma::http {
namespace {

constexpr int kLookWhetherItStopsMs = 100;
constexpr Milliseconds kAcceptAgain{10};

}  // namespace

Acceptor::Acceptor(int listening, Limits limits, std::atomic<bool>& stopping, Events events)
    : listening_(listening),
      limits_(limits),
      stopping_(stopping),
      events_(std::move(events)),
      thread_([this] { run(); }) {}

Acceptor::~Acceptor() {
  stopping_ = true;
  thread_.join();
  connections_.lock().wait(all_gone_, [](const Connections& connections) { return connections.open == 0; });
}

bool Acceptor::admit(const std::string& peer) {
  auto connections = connections_.lock();
  const auto of_peer = connections->by_peer.find(peer);
  if (connections->open >= limits_.connections) return false;
  if (of_peer != connections->by_peer.end() && of_peer->second >= limits_.per_peer) return false;
  ++connections->open;
  ++connections->by_peer[peer];
  return true;
}

void Acceptor::leave(const std::string& peer) {
  auto connections = connections_.lock();
  --connections->open;
  if (--connections->by_peer[peer] == 0) connections->by_peer.erase(peer);
  // With the lock held: whoever waits destroys the condition.
  all_gone_.notify_all();
}

void Acceptor::run() {
  while (!stopping_) {
    pollfd waited{.fd = listening_, .events = POLLIN, .revents = 0};
    if (poll(&waited, 1, kLookWhetherItStopsMs) > 0) accept_one();
  }
}

void Acceptor::accept_one() {
  FileDescriptor socket(accept4(listening_, nullptr, nullptr, SOCK_CLOEXEC));
  if (!socket) {
    // Out of descriptors, or the peer has gone again.
    sleep_for(kAcceptAgain);
    return;
  }
  // An answer of several packets does not wait for the acknowledgement of the first (RFC 9293, 3.7.4). A Unix
  // socket has no such option.
  const int on = 1;
  setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  const std::string peer = address_of_peer(socket.get());
  if (!admit(peer)) return events_.refused(peer, "too many connections");
  try {
    Thread([this, peer, socket = std::move(socket)]() mutable {
      events_.serve(std::move(socket));
      leave(peer);
    }).detach();
  } catch (const std::system_error& failed) {
    events_.refused(peer, std::string("no thread: ") + failed.what());
    leave(peer);
  }
}

}  // namespace pnfsrdma::http
