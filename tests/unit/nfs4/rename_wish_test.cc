// SPDX-License-Identifier: Apache-2.0
#include "shared/nfs4/rename_wish.h"

#include <gtest/gtest.h>

namespace pnfsrdma::nfs4 {
namespace {

TEST(RenameWish, IsReadAsItWasWritten) {
  for (const RenameHow how : {RenameHow::kReplace, RenameHow::kNoReplace, RenameHow::kExchange}) {
    const std::string said = to_new_name({"name", how});
    EXPECT_EQ(rename_wish(said).new_name, "name");
    EXPECT_EQ(rename_wish(said).how, how);
  }
}

TEST(RenameWish, IsNothingButTheseWords) {
  for (const std::string_view said : {"noreplace", "a/", "a/noreplac", "a/noreplace/", "a//exchange",
                                      "a/b/exchange", "a/Exchange", "/", "a/exchange\n"}) {
    EXPECT_EQ(rename_wish(said).new_name, said);
    EXPECT_EQ(rename_wish(said).how, RenameHow::kReplace) << said;
  }
  EXPECT_EQ(rename_wish("/exchange").new_name, "");
}

}  // namespace
}  // namespace pnfsrdma::nfs4
