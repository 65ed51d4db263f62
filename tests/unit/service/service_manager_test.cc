// SPDX-License-Identifier: Apache-2.0
#include "server/service/service_manager.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "tests/doubles/manual_clock.h"

namespace pnfsrdma {
namespace {

// A service manager's end of sd_notify(3): an abstract datagram socket.
class NotifySocket {
 public:
  NotifySocket() : fd_(socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)) {
    const std::string name = "pnfsrdma-service-test-" + std::to_string(getpid());
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, name.data(), name.size());
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    EXPECT_EQ(bind(fd_.get(), reinterpret_cast<sockaddr*>(&address), length), 0);
    setenv("NOTIFY_SOCKET", ("@" + name).c_str(), 1);
  }
  ~NotifySocket() { unsetenv("NOTIFY_SOCKET"); }

  std::vector<std::string> messages() const {
    std::vector<std::string> found;
    std::array<char, 256> buffer{};
    for (ssize_t count = 0; (count = recv(fd_.get(), buffer.data(), buffer.size(), 0)) >= 0;) {
      found.emplace_back(buffer.data(), static_cast<size_t>(count));
    }
    return found;
  }

 private:
  FileDescriptor fd_;
};

using Messages = std::vector<std::string>;

struct ServiceManagerTest : testing::Test {
  ~ServiceManagerTest() override { unsetenv("WATCHDOG_USEC"); }

  NotifySocket socket;
  ManualClock clock;
  EventLoop loop{clock};
  ServiceManager manager{loop};
};

TEST_F(ServiceManagerTest, TheWatchdogIsToldOfWorkThatKeepsTheLoop) {
  setenv("WATCHDOG_USEC", "60000000", 1);
  manager.ready();
  EXPECT_EQ(socket.messages(), Messages({"READY=1", "WATCHDOG=1"}));
  manager.busy(std::chrono::minutes(10));
  EXPECT_EQ(socket.messages(), Messages({"WATCHDOG_USEC=600000000\nWATCHDOG=1"}));
  manager.ready();
  EXPECT_EQ(socket.messages(), Messages({"WATCHDOG_USEC=60000000\nWATCHDOG=1"}));
}

TEST_F(ServiceManagerTest, HearsOfReadinessAndOfTheEnd) {
  manager.ready();
  EXPECT_EQ(socket.messages(), Messages({"READY=1"}));
  manager.status("standby: follows mds");
  EXPECT_EQ(socket.messages(), Messages({"STATUS=standby: follows mds"}));
  manager.stopping();
  EXPECT_EQ(socket.messages(), Messages({"STOPPING=1"}));
}

TEST_F(ServiceManagerTest, IsPingedTwiceInEachWatchdogPeriodWhileTheLoopTurns) {
  setenv("WATCHDOG_USEC", "2000000", 1);
  manager.ready();
  EXPECT_EQ(socket.messages(), Messages({"READY=1", "WATCHDOG=1"}));
  for (int period = 0; period < 3; ++period) {
    clock.advance(Milliseconds(999));
    loop.run_once(Milliseconds(0));
    EXPECT_EQ(socket.messages(), Messages{});
    clock.advance(Milliseconds(1));
    loop.run_once(Milliseconds(0));
    EXPECT_EQ(socket.messages(), Messages({"WATCHDOG=1"}));
  }
}

TEST_F(ServiceManagerTest, IsNotPingedByALoopThatHangs) {
  setenv("WATCHDOG_USEC", "2000000", 1);
  manager.ready();
  socket.messages();
  clock.advance(Milliseconds(60'000));
  EXPECT_EQ(socket.messages(), Messages{});
}

TEST_F(ServiceManagerTest, IsNotPingedWhereNobodyWaits) {
  manager.ready();
  socket.messages();
  clock.advance(Milliseconds(60'000));
  loop.run_once(Milliseconds(0));
  EXPECT_EQ(socket.messages(), Messages{});
}

}  // namespace
}  // namespace pnfsrdma
