// SPDX-License-Identifier: Apache-2.0
#include "shared/rdma/iwarp/tcp_stream.h"

#include <gtest/gtest.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

namespace pnfsrdma::rdma::iwarp {
namespace {

int option_of(const FileDescriptor& socket, int level, int name) {
  int value = 0;
  socklen_t size = sizeof value;
  EXPECT_EQ(getsockopt(socket.get(), level, name, &value, &size), 0);
  return value;
}

// Nobody here can pull a cable: that the kernel is asked to look after a silent peer is all that is seen.
TEST(TcpStream, AConnectionEndsWithinMinutesOfItsPeerVanishing) {
  const auto socket = make_socket(AF_INET, 0);
  ASSERT_TRUE(socket) << socket.error().to_string();
  EXPECT_EQ(option_of(*socket, SOL_SOCKET, SO_KEEPALIVE), 1);
  EXPECT_LE(option_of(*socket, IPPROTO_TCP, TCP_KEEPIDLE), 60);
  EXPECT_LE(option_of(*socket, IPPROTO_TCP, TCP_KEEPINTVL), 20);
  EXPECT_GT(option_of(*socket, IPPROTO_TCP, TCP_USER_TIMEOUT), 0);
  EXPECT_LE(option_of(*socket, IPPROTO_TCP, TCP_USER_TIMEOUT), 120'000);
}

}  // namespace
}  // namespace pnfsrdma::rdma::iwarp
