// SPDX-License-Identifier: Apache-2.0
#include "cli/output/text.h"

#include <gtest/gtest.h>

#include <clocale>

namespace pnfsrdma::cli {
namespace {

class Text : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_NE(std::setlocale(LC_CTYPE, "C.UTF-8"), nullptr); }
};

TEST_F(Text, WhatWouldSteerATerminalIsShownAsAQuestionMark) {
  EXPECT_EQ(printable("plain /srv/file"), "plain /srv/file");
  EXPECT_EQ(printable("a\033[2Jb\rc\nd\x7f"), "a?[2Jb?c?d?");
  EXPECT_EQ(printable("\xc2\x9b"), "?");  // C1: CSI
  EXPECT_EQ(printable("\xe2\x80\xae"
                      "exe"),
            "?exe");  // right-to-left override
}

TEST_F(Text, BytesThatAreNoUtf8AreShownAsQuestionMarks) {
  EXPECT_EQ(printable("\xff\xfe"), "??");
  EXPECT_EQ(printable("\xc3"), "?");            // cut
  EXPECT_EQ(printable("\xc0\xaf"), "??");       // overlong '/'
  EXPECT_EQ(printable("\xed\xa0\x80"), "???");  // a surrogate
  EXPECT_EQ(printable("gr\xc3\xbc\xc3\x9f"), "grüß");
}

TEST_F(Text, WideAndCombiningCharactersAreCountedAsTheyAreSeen) {
  EXPECT_EQ(columns_of("grüß"), 4u);
  EXPECT_EQ(columns_of("日本"), 4u);
  EXPECT_EQ(columns_of("e\u0301"), 1u);
}

TEST_F(Text, WhatIsCutEndsInAnEllipsisAndFits) {
  EXPECT_EQ(shortened("abcdef", 6), "abcdef");
  EXPECT_EQ(shortened("abcdef", 4), "abc…");
  EXPECT_EQ(shortened("日本語", 4), "日…");
  EXPECT_EQ(shortened("abc", 1), "…");
  EXPECT_EQ(shortened("abc", 0), "");
}

}  // namespace
}  // namespace pnfsrdma::cli
