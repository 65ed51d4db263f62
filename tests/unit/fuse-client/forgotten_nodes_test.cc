// SPDX-License-Identifier: Apache-2.0
#include "fuse-client/forgotten_nodes.h"

#include <gtest/gtest.h>

#include <string>

#include "shared/base/bytes.h"

namespace pnfsrdma::fuse_client {
namespace {

nfs4::FileHandle handle_of_file(uint64_t number) {
  const std::string name = std::to_string(number);
  return nfs4::FileHandle(as_bytes(name));
}

TEST(ForgottenNodes, AFileIsFoundByItsNumberAndTakenByItsHandle) {
  ForgottenNodes nodes;
  nodes.add(7, handle_of_file(1));
  EXPECT_EQ(nodes.handle_of(7), handle_of_file(1));
  EXPECT_FALSE(nodes.handle_of(8));
  EXPECT_FALSE(nodes.take(handle_of_file(2)));
  EXPECT_EQ(nodes.take(handle_of_file(1)), 7u);
  EXPECT_FALSE(nodes.handle_of(7));
  EXPECT_FALSE(nodes.take(handle_of_file(1)));
  EXPECT_EQ(nodes.size(), 0u);
}

TEST(ForgottenNodes, TheOldestGoFirst) {
  ForgottenNodes nodes;
  for (uint64_t node = 0; node < ForgottenNodes::kMost + 3; ++node) nodes.add(node, handle_of_file(node));
  EXPECT_EQ(nodes.size(), ForgottenNodes::kMost);
  EXPECT_FALSE(nodes.handle_of(2));
  EXPECT_FALSE(nodes.take(handle_of_file(2)));
  EXPECT_EQ(nodes.handle_of(3), handle_of_file(3));
}

}  // namespace
}  // namespace pnfsrdma::fuse_client
