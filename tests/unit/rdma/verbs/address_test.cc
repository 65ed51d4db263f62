// SPDX-License-Identifier: Apache-2.0
#include "shared/rdma/verbs/address.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace pnfsrdma::rdma::verbs {
namespace {

TEST(RdmaAddress, IsReadAndPrintedAlike) {
  for (const char* text : {"192.0.2.1:20052", "[2001:db8::1]:20052", "0.0.0.0:0"}) {
    const auto address = Address::parse(text);
    ASSERT_TRUE(address) << address.error().to_string();
    EXPECT_EQ(address->to_string(), text);
  }
  EXPECT_EQ(Address::parse("[2001:db8::1]:20052")->host(), "2001:db8::1");
  EXPECT_EQ(Address::parse("192.0.2.1:20052")->port(), 20052);
}

TEST(RdmaAddress, KnowsAWildcard) {
  EXPECT_TRUE(Address::parse("0.0.0.0:1")->wildcard());
  EXPECT_TRUE(Address::parse("[::]:1")->wildcard());
  EXPECT_FALSE(Address::parse("192.0.2.1:1")->wildcard());
}

TEST(RdmaAddress, OtherTextIsRefused) {
  EXPECT_EQ(Address::parse("192.0.2.1").error().number(), EINVAL);
  EXPECT_EQ(Address::parse("192.0.2.1:port").error().number(), EINVAL);
  EXPECT_EQ(Address::from(nullptr).error().number(), EAFNOSUPPORT);
}

}  // namespace
}  // namespace pnfsrdma::rdma::verbs
