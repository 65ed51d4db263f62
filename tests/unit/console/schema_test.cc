// SPDX-License-Identifier: Apache-2.0
#include "server/console/schema.h"

#include <gtest/gtest.h>

#include "server/console/api_document.h"

namespace pnfsrdma::console {
namespace {

size_t wrong(const char* schema, const char* value) {
  return find_wrong(Json::object(), Json::parse(schema), Json::parse(value)).size();
}

TEST(Schema, ChecksEachRule) {
  EXPECT_EQ(wrong(R"({"type":"string"})", "\"a\""), 0u);
  EXPECT_EQ(wrong(R"({"type":"string"})", "1"), 1u);
  EXPECT_EQ(wrong(R"({"type":["string","null"]})", "null"), 0u);
  EXPECT_EQ(wrong(R"({"type":"integer"})", "1.5"), 1u);
  EXPECT_EQ(wrong(R"({"type":"integer","minimum":1,"maximum":3})", "4"), 1u);
  EXPECT_EQ(wrong(R"({"type":"integer","minimum":1,"maximum":3})", "-1"), 1u);
  EXPECT_EQ(wrong(R"({"type":"integer","maximum":3})", "18446744073709551615"), 1u);
  EXPECT_EQ(wrong(R"({"type":"string","minLength":2,"maxLength":3})", "\"äöü\""), 0u);
  EXPECT_EQ(wrong(R"({"type":"string","maxLength":3})", "\"abcd\""), 1u);
  EXPECT_EQ(wrong(R"({"type":"string","pattern":"^[a-z]+$"})", "\"a1\""), 1u);
  EXPECT_EQ(wrong(R"({"enum":["a",null]})", "null"), 0u);
  EXPECT_EQ(wrong(R"({"enum":["a"]})", "\"b\""), 1u);
  EXPECT_EQ(wrong(R"({"type":"array","items":{"type":"integer"},"maxItems":2})", "[1,\"x\"]"), 1u);
  EXPECT_EQ(wrong(R"({"type":"array","maxItems":2})", "[1,2,3]"), 1u);
}

TEST(Schema, NamesEachWrongMember) {
  const Json schema =
      Json::parse(R"({"type":"object","required":["a"],"additionalProperties":false,"properties":)"
                  R"({"a":{"type":"string"},"b":{"type":"array","items":{"type":"integer"}}}})");
  const auto found = find_wrong(Json::object(), schema, Json::parse(R"({"b":[1,"x"],"c":1})"));
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].pointer, "/a");
  EXPECT_EQ(found[1].pointer, "/b/1");
  EXPECT_EQ(found[2].pointer, "/c");
}

TEST(Schema, LongTextsAreNotMatchedCharacterByCharacter) {
  const Json schema{{"type", "string"}, {"pattern", "^a*$"}};
  EXPECT_EQ(find_wrong(Json::object(), schema, Json(std::string(200'000, 'a'))).size(), 1u);
}

TEST(Schema, EveryRuleOfTheDocumentIsOneThatIsEnforced) {
  const ApiDocument document;
  // A rule we do not know would CHECK. Values of no type visit as far as types go; requests are what counts.
  for (const auto& operation : document.operations()) {
    for (const auto& parameter : operation.parameters)
      find_wrong(document.json(), *parameter.schema, parse_parameter(*parameter.schema, "1"));
    if (operation.body != nullptr) find_wrong(document.json(), *operation.body, Json::object());
  }
}

TEST(Schema, ParametersAreOfTheirType) {
  EXPECT_EQ(parse_parameter({{"type", "integer"}}, "12"), 12u);
  EXPECT_EQ(parse_parameter({{"type", "integer"}}, "12x"), "12x");
  EXPECT_EQ(parse_parameter({{"type", "integer"}}, "-1"), "-1");
  EXPECT_EQ(parse_parameter({{"type", "boolean"}}, "true"), true);
  EXPECT_EQ(parse_parameter({{"type", "string"}}, "12"), "12");
}

}  // namespace
}  // namespace pnfsrdma::console
