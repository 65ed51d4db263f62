// SPDX-License-Identifier: Apache-2.0
#include "shared/http/acceptor.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <optional>
#include <vector>

#include "shared/base/clock.h"
#include "shared/http/peer_stream.h"

namespace pnfsrdma::http {
namespace {

constexpr Milliseconds kLong{60'000};
constexpr int kSoonMs = 5000;

// Echoes a byte at a time, until its deadline.
class Echo final : public PeerStream {
 public:
  Echo(FileDescriptor socket, const std::atomic<bool>& stopping, Milliseconds patience)
      : PeerStream(std::move(socket), nullptr, stopping), deadline_(steady_now() + patience) {}
  bool is_readable() const override { return wait(POLLIN, deadline_); }
  bool is_writable() const override { return wait(POLLOUT, deadline_); }
  ssize_t read(char* buffer, size_t size) override { return receive(buffer, size, deadline_); }
  ssize_t write(const char* bytes, size_t size) override {
    return send_all(bytes, size, deadline_) ? static_cast<ssize_t>(size) : -1;
  }

 private:
  const SteadyTime deadline_;
};

class Accepted : public testing::Test {
 protected:
  void SetUp() override {
    listening = FileDescriptor(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ASSERT_EQ(bind(listening.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    ASSERT_EQ(listen(listening.get(), 16), 0);
    socklen_t size = sizeof address;
    ASSERT_EQ(getsockname(listening.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  }
  void start(Acceptor::Limits limits, Milliseconds patience = kLong) {
    acceptor.emplace(
        listening.get(), limits, stopping,
        Acceptor::Events{.serve =
                             [this, patience](FileDescriptor accepted) {
                               Echo echo(std::move(accepted), stopping, patience);
                               EXPECT_TRUE(echo.handshake(steady_now()));  // plain: nothing to do
                               EXPECT_EQ(echo.address(), "127.0.0.1");
                               char byte = 0;
                               while (echo.read(&byte, 1) == 1) echo.write(&byte, 1);
                             },
                         .refused =
                             [this](const std::string& peer, const std::string& why, size_t count) {
                               refused.lock()->push_back(peer + ": " + why + " " + std::to_string(count));
                             }});
  }
  FileDescriptor dial() const {
    FileDescriptor peer(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(connect(peer.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    return peer;
  }
  static bool echoes(const FileDescriptor& peer) {
    char byte = 'x';
    if (send(peer.get(), &byte, 1, MSG_NOSIGNAL) != 1) return false;
    byte = 0;
    return recv(peer.get(), &byte, 1, 0) == 1 && byte == 'x';
  }
  // The end of the connection is seen.
  static bool is_closed(const FileDescriptor& peer) {
    pollfd waited{.fd = peer.get(), .events = POLLIN, .revents = 0};
    char byte = 0;
    return poll(&waited, 1, kSoonMs) == 1 && recv(peer.get(), &byte, 1, 0) <= 0;
  }

  sockaddr_in address{};
  FileDescriptor listening;
  std::atomic<bool> stopping = false;
  Guarded<std::vector<std::string>> refused;
  std::optional<Acceptor> acceptor;
};

TEST_F(Accepted, WhoComesWhenThereAreTooManyIsClosed) {
  start({.connections = 2, .per_peer = 2});
  FileDescriptor first = dial();
  const FileDescriptor second = dial();
  EXPECT_TRUE(echoes(first) && echoes(second));
  const FileDescriptor third = dial();
  EXPECT_TRUE(is_closed(third));
  EXPECT_EQ(*refused.lock(), std::vector<std::string>{"127.0.0.1: too many connections 1"});
  first = FileDescriptor();
  // Its place is free as soon as its thread has seen the end.
  for (const SteadyTime end = steady_now() + Milliseconds(kSoonMs); steady_now() < end;) {
    if (echoes(dial())) return;
    sleep_for(Milliseconds(10));
  }
  ADD_FAILURE() << "nobody is let in any more";
}

TEST_F(Accepted, OfOneAddressThereAreFewer) {
  start({.connections = 8, .per_peer = 1});
  const FileDescriptor first = dial();
  EXPECT_TRUE(echoes(first));
  EXPECT_TRUE(is_closed(dial()));
}

TEST_F(Accepted, ManyRefusalsAreToldNowAndThen) {
  start({.connections = 1, .per_peer = 1});
  const FileDescriptor first = dial();
  EXPECT_TRUE(echoes(first));
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(is_closed(dial()));
  EXPECT_EQ(refused.lock()->size(), 1U);
}

TEST(NetworkOfPeer, IsThe64BitsThatAHostMayChooseAddressesIn) {
  EXPECT_EQ(network_of_peer("192.0.2.7"), "192.0.2.7");
  EXPECT_EQ(network_of_peer("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::/64");
  EXPECT_EQ(network_of_peer("2001:db8:1:2::"), network_of_peer("2001:db8:1:2:ffff:ffff:ffff:ffff"));
  EXPECT_NE(network_of_peer("2001:db8:1:2::"), network_of_peer("2001:db8:1:3::"));
  EXPECT_EQ(network_of_peer("unknown"), "unknown");
  EXPECT_EQ(network_of_peer(""), "") << "a Unix socket";
}

TEST_F(Accepted, TheEndBreaksOffSilentConnections) {
  start({.connections = 8, .per_peer = 8});
  const FileDescriptor silent = dial();
  const FileDescriptor busy = dial();
  EXPECT_TRUE(echoes(busy));
  const SteadyTime begun = steady_now();
  acceptor.reset();
  EXPECT_LT(steady_now() - begun, Milliseconds(kSoonMs));
  EXPECT_TRUE(stopping);
  EXPECT_TRUE(is_closed(busy));
}

TEST_F(Accepted, ADeadlineEndsASilentConnection) {
  start({.connections = 1, .per_peer = 1}, Milliseconds(50));
  EXPECT_TRUE(is_closed(dial()));
}

}  // namespace
}  // namespace pnfsrdma::http
