// SPDX-License-Identifier: Apache-2.0
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "shared/base/bytes.h"
#include "shared/base/check.h"
#include "shared/base/owned.h"
#include "tests/bench/percentiles.h"
#include "tests/bench/transport/measurement.h"
#include "tests/bench/transport/memory.h"

namespace pnfsrdma::bench {
namespace {

void set_options(int socket, int buffer_bytes) {
  int on = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  ::setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &buffer_bytes, sizeof(buffer_bytes));
  ::setsockopt(socket, SOL_SOCKET, SO_RCVBUF, &buffer_bytes, sizeof(buffer_bytes));
}

// Both ends of a TCP connection over loopback.
struct Pair {
  FileDescriptor here, there;
  explicit Pair(int buffer_bytes) {
    FileDescriptor listener(::socket(AF_INET, SOCK_STREAM, 0));
    set_options(listener.get(), buffer_bytes);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    socklen_t size = sizeof(address);
    CHECK(::bind(listener.get(), generic, size) == 0 && ::listen(listener.get(), 1) == 0);
    CHECK(::getsockname(listener.get(), generic, &size) == 0);
    here = FileDescriptor(::socket(AF_INET, SOCK_STREAM, 0));
    set_options(here.get(), buffer_bytes);
    CHECK(::connect(here.get(), generic, size) == 0);
    there = FileDescriptor(::accept(listener.get(), nullptr, nullptr));
    set_options(there.get(), buffer_bytes);
  }
};

bool send_all(int socket, const std::byte* from, size_t count) {
  while (count > 0) {
    ssize_t sent = ::send(socket, from, count, MSG_NOSIGNAL);
    if (sent <= 0) return false;
    from += sent;
    count -= static_cast<size_t>(sent);
  }
  return true;
}

bool receive_all(int socket, std::byte* to, size_t count) {
  while (count > 0) {
    ssize_t received = ::recv(socket, to, count, 0);
    if (received <= 0) return false;
    to += received;
    count -= static_cast<size_t>(received);
  }
  return true;
}

}  // namespace

void pin_to(int cpu) {
  if (cpu < 0) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<unsigned>(cpu), &set);
  ::sched_setaffinity(0, sizeof(set), &set);
}

int allowed_cpu(int index) {
  cpu_set_t set;
  CPU_ZERO(&set);
  ::sched_getaffinity(0, sizeof(set), &set);
  int last = -1;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(static_cast<unsigned>(cpu), &set)) continue;
    last = cpu;
    if (index-- == 0) break;
  }
  return last;
}

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double TcpBaseline::stream(const Settings& settings, size_t size) {
  Pair pair(settings.socket_buffer_bytes);
  std::atomic<bool> stop = false;
  std::thread sender([&] {
    pin_to(settings.initiator_cpu);
    const Bytes& source = Memory::source();
    for (size_t at = 0; !stop && send_all(pair.here.get(), source.data() + at, size);) {
      at = at + 2 * size <= source.size() ? at + size : 0;
    }
    ::shutdown(pair.here.get(), SHUT_WR);
  });
  pin_to(settings.target_cpu);
  Bytes& target = Memory::destination();
  size_t at = 0;
  uint64_t bytes = 0;
  double start = seconds_now(), now = start;
  while (now - start < settings.seconds) {
    for (int i = 0; i < 16; ++i) {
      CHECK(receive_all(pair.there.get(), target.data() + at, size));
      at = at + 2 * size <= target.size() ? at + size : 0;
      bytes += size;
    }
    now = seconds_now();
  }
  stop = true;
  // To its end: the sender may wait for room, which no shutdown gives it.
  while (receive_all(pair.there.get(), target.data(), size)) {
  }
  sender.join();
  return static_cast<double>(bytes) / (now - start) / 1e9;
}

double TcpBaseline::ping_pong(const Settings& settings, size_t size) {
  Pair pair(settings.socket_buffer_bytes);
  std::thread responder([&] {
    pin_to(settings.target_cpu);
    std::byte question;
    const Bytes& source = Memory::source();
    while (receive_all(pair.there.get(), &question, 1) && send_all(pair.there.get(), source.data(), size)) {
    }
  });
  pin_to(settings.initiator_cpu);
  Bytes& sink = Memory::destination();
  Percentiles seconds;
  for (double start = seconds_now(), end = start + settings.seconds; start < end;) {
    CHECK(send_all(pair.here.get(), sink.data(), 1) && receive_all(pair.here.get(), sink.data(), size));
    const double now = seconds_now();
    seconds.add(now - start);
    start = now;
  }
  ::shutdown(pair.here.get(), SHUT_RDWR);
  responder.join();
  return seconds.at(50) * 1e6;
}

}  // namespace pnfsrdma::bench
