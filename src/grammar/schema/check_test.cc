#include "grammar/schema/check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace kvasir::grammar::schema_check_test {
namespace {

std::vector<std::string> pointers_of(const std::vector<SchemaNote>& notes) {
  std::vector<std::string> pointers;
  for (const SchemaNote& note : notes) pointers.push_back(note.pointer);
  std::ranges::sort(pointers);
  return pointers;
}

TEST(SchemaCheck, NamesEveryKeywordThatIsRefused) {
  const auto report = check_schema(
      R"({"properties":{"a":{"$ref":"#/$defs/none"},"b":{"pattern":"(x)\\1"},"c":{"type":"integer"},"d":{"type":"what"}}})");
  ASSERT_TRUE(report.has_value());
  EXPECT_FALSE(report->is_supported());
  EXPECT_EQ(pointers_of(report->refused),
            (std::vector<std::string>{"/properties/a/$ref", "/properties/b/pattern", "/properties/d/type"}));
  for (const SchemaNote& note : report->refused) EXPECT_TRUE(note.pointer.ends_with("/" + note.keyword));
}

TEST(SchemaCheck, NamesWhatIsNarrowedAndWhatIsIgnored) {
  const auto report = check_schema(
      R"({"properties":{"n":{"type":"integer"},"f":{"format":"email"},"g":{"format":"made-up","x-own":1,"title":"t"}}})");
  ASSERT_TRUE(report.has_value());
  EXPECT_TRUE(report->is_supported());
  const std::vector<std::string> narrowed = pointers_of(report->narrowed);
  EXPECT_TRUE(std::ranges::find(narrowed, "/properties/n/type") != narrowed.end());
  EXPECT_TRUE(std::ranges::find(narrowed, "/properties/f/format") != narrowed.end());
  EXPECT_EQ(report->ignored, (std::vector<std::string>{"/properties/g/format", "/properties/g/x-own"}));
  EXPECT_GT(report->num_cells, 0U);
}

TEST(SchemaCheck, RefusesWhatNothingSatisfies) {
  const auto report = check_schema(R"({"type":"string","enum":[1]})");
  ASSERT_TRUE(report.has_value());
  ASSERT_EQ(report->refused.size(), 1U);
  EXPECT_EQ(report->refused[0].reason, "nothing satisfies the schema");
  const auto member = check_schema(R"({"type":"object","required":["a"],"properties":{"a":{"enum":[]}}})");
  ASSERT_TRUE(member.has_value());
  EXPECT_EQ(pointers_of(member->refused), std::vector<std::string>{"/properties/a"});
  EXPECT_FALSE(check_schema("{").has_value());
}

}  // namespace
}  // namespace kvasir::grammar::schema_check_test
