// SPDX-License-Identifier: Apache-2.0
#include "shared/client/server.h"

#include <gtest/gtest.h>

namespace pnfsrdma::client {
namespace {

TEST(Server, SaysInItsNameThatItKnowsTheWordsOfRename) {
  const std::string name = "pnfsrdma-mdsd/1.0 durability=power rename=noreplace+exchange";
  EXPECT_TRUE(knows_rename_words(name));
  EXPECT_EQ(durability_told(name), "power");
  EXPECT_FALSE(knows_rename_words("pnfsrdma-mdsd/1.0 durability=power"));
  EXPECT_FALSE(knows_rename_words("another/1.0 rename=noreplace+exchange"));
  EXPECT_FALSE(knows_rename_words(""));
}

}  // namespace
}  // namespace pnfsrdma::client
