// SPDX-License-Identifier: Apache-2.0
#include "cli/cluster/json_text.h"

#include <gtest/gtest.h>

namespace pnfsrdma::cli {
namespace {

using nlohmann::json;

const json kLog = {{"endpoints", {"https://a:1"}}};

constexpr const char* kSite = R"(// of the site
{
  // "metadata_log": not this one, { nor this brace
  "listen": ["[::]:2049"], /* "metadata_log": {} */
  "words": {"a": "}, \"metadata_log\": 1", "b": [1, {}]}
}
)";

TEST(JsonText, AMemberComesInFrontAndAllElseStays) {
  const auto changed = with_member(kSite, "metadata_log", kLog);
  ASSERT_TRUE(changed);
  EXPECT_EQ(*changed, std::string("// of the site\n{\n  \"metadata_log\": {\n    \"endpoints\": [\n      "
                                  "\"https://a:1\"\n    ]\n  },") +
                          (kSite + std::string_view("// of the site\n{").size()));
  EXPECT_EQ(without_member(*changed, "metadata_log"), kSite);
}

TEST(JsonText, AMemberIsReplacedWhereItStands) {
  const std::string before = "{\"a\": 1, \"metadata_log\": {\"x\": [1, 2]} /* old */, \"b\": 2}";
  const auto changed = with_member(before, "metadata_log", 7);
  ASSERT_TRUE(changed);
  EXPECT_EQ(*changed, "{\"a\": 1, \"metadata_log\": 7 /* old */, \"b\": 2}");
}

TEST(JsonText, TheLastMemberTakesTheCommaBeforeIt) {
  const auto changed = without_member("{\"a\": 1, // one\n \"b\": 2\n}", "b");
  ASSERT_TRUE(changed);
  EXPECT_EQ(read_json_text(*changed), json({{"a", 1}}));
  EXPECT_NE(changed->find("// one"), std::string::npos);
}

TEST(JsonText, AnEmptyObjectHasNoCommaLeft) {
  const auto changed = with_member("{}", "metadata_log", 1);
  ASSERT_TRUE(changed);
  EXPECT_EQ(read_json_text(*changed), json({{"metadata_log", 1}}));
  const auto back = without_member(*changed, "metadata_log");
  ASSERT_TRUE(back);
  EXPECT_EQ(read_json_text(*back), json::object());
}

TEST(JsonText, WhatIsNoObjectIsRefused) {
  for (const char* text : {"", "[]", "{", "{\"a\": }", "nonsense"}) {
    EXPECT_FALSE(with_member(text, "a", 1)) << text;
    EXPECT_FALSE(without_member(text, "a")) << text;
  }
}

}  // namespace
}  // namespace pnfsrdma::cli
