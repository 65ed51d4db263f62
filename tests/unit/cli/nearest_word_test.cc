// SPDX-License-Identifier: Apache-2.0
#include "cli/output/nearest_word.h"

#include <gtest/gtest.h>

namespace pnfsrdma::cli {
namespace {

const std::vector<std::string> kNouns = {"stat",   "doctor", "brick",  "device",
                                         "export", "layout", "client", "health"};

TEST(NearestWord, FindsSlipsOfTheFinger) {
  EXPECT_EQ(nearest_word("brik", kNouns), "brick");
  EXPECT_EQ(nearest_word("bricks", kNouns), "brick");
  EXPECT_EQ(nearest_word("exprot", kNouns), "export");
  EXPECT_EQ(nearest_word("stats", kNouns), "stat");
}

TEST(NearestWord, TakesABeginningForTheWord) {
  EXPECT_EQ(nearest_word("he", kNouns), "health");
  EXPECT_EQ(nearest_word("lay", kNouns), "layout");
}

TEST(NearestWord, SaysNothingWhereItDoesNotKnow) {
  EXPECT_EQ(nearest_word("frobnicate", kNouns), std::nullopt);
  EXPECT_EQ(nearest_word("", kNouns), std::nullopt);
  EXPECT_EQ(nearest_word("x", kNouns), std::nullopt);
  EXPECT_EQ(nearest_word("lis", {"list", "lisp"}), std::nullopt);
  EXPECT_EQ(nearest_word(std::string(1000, 'a'), kNouns), std::nullopt);
}

}  // namespace
}  // namespace pnfsrdma::cli
