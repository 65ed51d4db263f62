// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cerrno>

#include "shared/rpc/socket_address.h"
#include "shared/rpc/universal_address.h"

namespace pnfsrdma::rpc {
namespace {

std::string parsed(std::string_view text, uint16_t default_port = 0) {
  const auto address = SocketAddress::parse(text, default_port);
  return address ? address->to_string() : "error";
}

TEST(SocketAddress, TakesTheUsualForms) {
  EXPECT_EQ(parsed("127.0.0.1:2049"), "127.0.0.1:2049");
  EXPECT_EQ(parsed("127.0.0.1", 20050), "127.0.0.1:20050");
  EXPECT_EQ(parsed("[::1]:2049"), "[::1]:2049");
  EXPECT_EQ(parsed("::1", 111), "[::1]:111");
  EXPECT_EQ(parsed("[::1]", 111), "[::1]:111");
  EXPECT_EQ(parsed(":2049"), "0.0.0.0:2049");
  EXPECT_EQ(parsed("/run/brick.sock"), "unix:/run/brick.sock");
  EXPECT_EQ(parsed("unix:/run/brick.sock"), "unix:/run/brick.sock");
}

TEST(SocketAddress, RefusesNonsense) {
  EXPECT_EQ(parsed("127.0.0.1:70000"), "error");
  EXPECT_EQ(parsed("127.0.0.1:x"), "error");
  EXPECT_EQ(parsed("[::1"), "error");
  EXPECT_EQ(parsed("[::1]x"), "error");
  EXPECT_EQ(parsed(std::string(200, '/')), "error");
}

TEST(UniversalAddress, IsHostAndTwoBytesOfPort) {
  EXPECT_EQ(to_universal_address(*SocketAddress::parse("127.0.0.1:20050")), "127.0.0.1.78.82");
  EXPECT_EQ(to_universal_address(*SocketAddress::parse("[::1]:2049")), "::1.8.1");
  EXPECT_EQ(from_universal_address("127.0.0.1.78.82")->to_string(), "127.0.0.1:20050");
  EXPECT_EQ(from_universal_address("fe80::2.8.1")->to_string(), "[fe80::2]:2049");
  EXPECT_EQ(netid_of(*SocketAddress::parse("[::1]:1")), "tcp6");
  EXPECT_EQ(netid_of(*SocketAddress::parse("127.0.0.1:1"), true), "rdma");
}

TEST(UniversalAddress, RefusesWhatIsNone) {
  for (const char* text : {"", "127.0.0.1", "127.0.0.1.256.1", "127.0.0.1.1.256", "127.0.0.1.-1.1",
                           "localhost.8.1", "127.0.0.1.8.", ".8.1", "127.0.0.1.8.1x", "8.1"}) {
    EXPECT_FALSE(from_universal_address(text).has_value()) << text;
  }
}

}  // namespace
}  // namespace pnfsrdma::rpc
