#include "jinja/value.h"

#include <gtest/gtest.h>

#include <string>

namespace kvasir::jinja::value_test {
namespace {

TEST(Value, ReadsJsonInOrderWithIntegersAndFloatsApart) {
  const auto value = Value::from_json(R"({"b": 1, "a": 1.0, "c": [true, null, "\u00e9"]})");
  ASSERT_TRUE(value);
  const auto& entries = value->as_dict().entries();
  ASSERT_EQ(entries.size(), 3u);
  EXPECT_EQ(entries[0].first.as_string(), "b");
  EXPECT_EQ(entries[0].second.kind(), Value::Kind::kInt);
  EXPECT_EQ(entries[1].second.kind(), Value::Kind::kFloat);
  EXPECT_EQ(entries[2].second.as_list().items[2].as_string(), "é");
}

TEST(Value, KeepsTheLastOfRepeatedKeysAtTheFirstPlace) {
  const auto value = Value::from_json(R"({"a": 1, "b": 2, "a": 3})");
  ASSERT_TRUE(value);
  const auto& entries = value->as_dict().entries();
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[0].first.as_string(), "a");
  EXPECT_EQ(entries[0].second.as_int(), 3);
}

TEST(Value, KeepsIntegersBeyondInt64AsDigits) {
  const auto value = Value::from_json("[18446744073709551615]");
  ASSERT_TRUE(value);
  EXPECT_EQ(value->as_list().items[0].kind(), Value::Kind::kBigInt);
  EXPECT_EQ(value->as_list().items[0].digits(), "18446744073709551615");
}

TEST(Value, RefusesBrokenJsonWithoutReadingPastIt) {
  for (const char* json :
       {"", "{", "[1,]", "nul", "{\"a\" 1}", "[1] 2", "\"\\x\"", "\"\xff\"", "01", "1e999"}) {
    EXPECT_FALSE(Value::from_json(json)) << json;
  }
}

TEST(Value, RefusesJsonNestedBeyondTheLimit) {
  const auto nested = [](std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_TRUE(Value::from_json(nested(kMaxValueDepth)));
  EXPECT_FALSE(Value::from_json(nested(kMaxValueDepth + 1)));
  EXPECT_FALSE(Value::from_json(nested(100'000)));
}

TEST(Value, FindsKeysThatAreEqualNumbersOfAnyKind) {
  const Value dict =
      Value::dict({{Value::integer(1), Value::string("one")}, {Value::none(), Value::string("nil")}});
  ASSERT_NE(dict.as_dict().find(Value::number(1.0)), nullptr);
  ASSERT_NE(dict.as_dict().find(Value::boolean(true)), nullptr);
  EXPECT_EQ(dict.as_dict().find(Value::integer(2)), nullptr);
  EXPECT_EQ(dict.as_dict().find(Value::string("1")), nullptr);
  EXPECT_EQ(dict.as_dict().find(Value::list({})), nullptr);
}

}  // namespace
}  // namespace kvasir::jinja::value_test
