// SPDX-License-Identifier: Apache-2.0
#include "shared/rpc/dial.h"

#include <gtest/gtest.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <set>
#include <thread>
#include <vector>

#include "shared/rpc/server.h"

namespace pnfsrdma::rpc {
namespace {

constexpr Milliseconds kPatience{5000};

TEST(Dial, ReportsRefusal) {
  SystemClock clock;
  EventLoop loop(clock);
  SocketAddress nobody;
  {
    auto listener = Listener::listen(loop, *SocketAddress::parse("127.0.0.1:0"), Service{});
    nobody = (*listener)->address();
  }
  std::optional<int> number;
  dial(loop, nobody, kPatience,
       [&](Result<FileDescriptor> socket) { number = socket ? 0 : socket.error().number(); });
  for (int i = 0; i < 1000 && !number; ++i) loop.run_once(Milliseconds(5));
  EXPECT_EQ(number, ECONNREFUSED);
  EXPECT_EQ(dial_and_wait(nobody, kPatience).error().number(), ECONNREFUSED);
}

class ReservedPort : public testing::TestWithParam<const char*> {
 protected:
  // The port a new connection to a listener comes from; 0: none was made.
  uint16_t port() {
    auto dialed = dial_and_wait((*listener_)->address(), kPatience, LocalPort::kReserved);
    if (!dialed) return 0;
    sockets_.push_back(std::move(*dialed));
    return SocketAddress::local_of(sockets_.back().get())->port();
  }
  SystemClock clock_;
  std::optional<MemoryBudget> budget_;
  EventLoop loop_{clock_};
  Result<std::unique_ptr<Listener>> listener_ =
      Listener::listen(loop_, *SocketAddress::parse(GetParam()), Service{});
  std::vector<FileDescriptor> sockets_;
};

TEST_P(ReservedPort, IsTakenByRootAndNotTwice) {
  if (!listener_) GTEST_SKIP() << "no " << GetParam() << " on this machine";
  if (port() > kReservedPortLast) GTEST_SKIP() << "reserved ports are not for this user";
  std::set<uint16_t> ports;
  for (int i = 0; i < 20; ++i) ports.insert(port());
  EXPECT_EQ(ports.size(), 20u);
  EXPECT_GE(*ports.begin(), kReservedPortFirst);
  EXPECT_LE(*ports.rbegin(), kReservedPortLast);
}

// A server that wants none is not lost for who may bind none.
TEST_P(ReservedPort, IsNotInsistedOn) {
  if (!listener_) GTEST_SKIP() << "no " << GetParam() << " on this machine";
  const pid_t user = fork();
  if (user == 0) {
    if (geteuid() == 0 && setuid(65534) != 0) _exit(2);
    _exit(port() > kReservedPortLast ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(user, &status, 0), user);
  int everybodys_first = kReservedPortLast + 1;
  std::ifstream("/proc/sys/net/ipv4/ip_unprivileged_port_start") >> everybodys_first;
  if (everybodys_first <= kReservedPortLast) GTEST_SKIP() << "here everybody may bind reserved ports";
  EXPECT_EQ(status, 0);
}
INSTANTIATE_TEST_SUITE_P(Families, ReservedPort, testing::Values("127.0.0.1:0", "[::1]:0"));

// A network of its own for the calling thread, with its loopback up. False: that is not permitted.
bool alone_on_a_network() {
  if (unshare(CLONE_NEWNET) != 0) return false;
  const FileDescriptor any(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq loopback{};
  std::strcpy(loopback.ifr_name, "lo");
  loopback.ifr_flags = IFF_UP;
  return any && ioctl(any.get(), SIOCSIFFLAGS, &loopback) == 0;
}

FileDescriptor listening() {
  FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const auto address = SocketAddress::parse("127.0.0.1:0");
  EXPECT_EQ(bind(socket.get(), address->data(), address->size()), 0);
  EXPECT_EQ(listen(socket.get(), 512), 0);
  return socket;
}

// Each rests for a minute behind its connection, but only towards the server that this one led to. Programs that
// are short run one after the other: the 360th must reach another server from a reserved port still.
TEST(ReservedPorts, ThatRestBehindConnectionsToOneServerAreFreeForAnother) {
  std::thread([] {
    if (!alone_on_a_network()) GTEST_SKIP() << "no network of its own for this user";
    const FileDescriptor first = listening();
    const FileDescriptor second = listening();
    const auto port_to = [](const FileDescriptor& server) {
      auto dialed = dial_and_wait(*SocketAddress::local_of(server.get()), kPatience, LocalPort::kReserved);
      EXPECT_TRUE(dialed) << dialed.error().to_string();
      return dialed ? std::pair(std::move(*dialed), SocketAddress::local_of(dialed->get())->port())
                    : std::pair(FileDescriptor(), uint16_t{0});
    };
    for (int i = 0; i <= kReservedPortLast - kReservedPortFirst; ++i) {
      auto [ours, port] = port_to(first);
      const FileDescriptor theirs(accept4(first.get(), nullptr, nullptr, SOCK_CLOEXEC));
      ASSERT_LE(port, kReservedPortLast);
      ours.reset();  // we close first, so we are the side that rests
    }
    std::vector<FileDescriptor> open;
    std::set<uint16_t> ports;
    for (int i = 0; i < 20; ++i) {
      auto [ours, port] = port_to(second);
      open.push_back(std::move(ours));
      ports.insert(port);
    }
    EXPECT_EQ(ports.size(), 20u);
    EXPECT_LE(*ports.rbegin(), kReservedPortLast);
  }).join();
}

}  // namespace
}  // namespace pnfsrdma::rpc
