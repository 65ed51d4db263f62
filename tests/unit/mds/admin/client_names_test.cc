// SPDX-License-Identifier: Apache-2.0
#include "server/mds/admin/client_names.h"

#include <gtest/gtest.h>

namespace pnfsrdma::mds {
namespace {

Client client_of(const std::string& owner) {
  Client client;
  const ByteSpan bytes = as_bytes(owner);
  client.owner.assign(bytes.begin(), bytes.end());
  return client;
}

TEST(ClientNames, OfOurMountsAreTheirHostAndSixDigitsOfTheMount) {
  const Client one = client_of("pnfsrdma-db-7.example-0123456789abcdef0123456789abcdef");
  const Client other = client_of("pnfsrdma-db-7.example-fedcba9876543210fedcba9876543210");
  EXPECT_EQ(host_of_client(one), "db-7.example");
  EXPECT_EQ(client_name(one), "db-7.example-012345");
  EXPECT_EQ(client_name(other), "db-7.example-fedcba");
}

TEST(ClientNames, OfLinuxMountsAreTheirHost) {
  EXPECT_EQ(host_of_client(client_of("Linux NFSv4.2 web3")), "web3");
  EXPECT_EQ(host_of_client(client_of("Linux NFSv4.1 3f2a-11/web3.example")), "web3.example");
  const std::string name = client_name(client_of("Linux NFSv4.2 web3"));
  EXPECT_EQ(name.size(), std::string("web3-012345").size());
  EXPECT_EQ(name, client_name(client_of("Linux NFSv4.2 web3")));
}

TEST(ClientNames, WhatIsNoHostNameIsNotShownAsOne) {
  for (const char* owner :
       {"", "pnfsrdma--0123456789abcdef0123456789abcdef", "pnfsrdma-a<b>-0123456789abcdef0123456789abcdef",
        "Linux NFSv4.", "Linux NFSv4.2 a b", "pnfsrdma-host-0123", "\xFF\x00"}) {
    EXPECT_EQ(host_of_client(client_of(owner)), "client") << owner;
    EXPECT_TRUE(client_name(client_of(owner)).starts_with("client-")) << owner;
  }
}

}  // namespace
}  // namespace pnfsrdma::mds
