// SPDX-License-Identifier: Apache-2.0
#include "shared/http/acceptor.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <iterator>
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
  const std::string network = network_of_peer(peer);
  if (!admit(network)) return refuse(peer, "too many connections");
  try {
    Thread([this, network, socket = std::move(socket)]() mutable {
      events_.serve(std::move(socket));
      leave(network);
    }).detach();
  } catch (const std::system_error& failed) {
    refuse(peer, std::string("no thread: ") + failed.what());
    leave(network);
  }
}

// Anybody can come to the door and be refused.
void Acceptor::refuse(const std::string& peer, const std::string& why) {
  ++refused_;
  const SteadyTime now = steady_now();
  if (refusal_told_ && now - *refusal_told_ < kRefusalToldEvery) return;
  refusal_told_ = now;
  events_.refused(peer, why, std::exchange(refused_, 0));
}

std::string network_of_peer(const std::string& address) {
  in6_addr six{};
  if (inet_pton(AF_INET6, address.c_str(), &six) != 1) return address;
  std::fill(six.s6_addr + 8, std::end(six.s6_addr), uint8_t{0});
  char text[INET6_ADDRSTRLEN] = {};
  inet_ntop(AF_INET6, &six, text, sizeof text);
  return std::string(text) + "/64";
}

}  // namespace pnfsrdma::http
