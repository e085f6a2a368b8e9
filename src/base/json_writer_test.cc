#include "base/json_writer.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <random>
#include <string>

#include "base/utf8.h"

namespace kvasir::json_writer_test {
namespace {

template <class T>
std::string json_of(const T& content) {
  std::string out;
  JsonWriter(out).value(content);
  return out;
}

TEST(JsonWriter, NestsObjectsAndArrays) {
  std::string out;
  JsonWriter json(out);
  json.begin_object().member("id", "a").key("list").begin_array().value(1).value(2u).value(true).null();
  json.begin_object().end_object().begin_array().end_array().end_array().member_null("error");
  EXPECT_FALSE(json.complete());
  json.end_object();
  EXPECT_TRUE(json.complete());
  EXPECT_EQ(out, R"({"id":"a","list":[1,2,true,null,{},[]],"error":null})");
}

TEST(JsonWriter, IndentsByTwoSpacesWhenPretty) {
  std::string out;
  JsonWriter json(out, JsonWriter::Style::kPretty);
  json.begin_object().member("a", 1).key("b").begin_array().value("x").value("y").end_array();
  json.key("c").begin_object().end_object().end_object();
  EXPECT_EQ(out, "{\n  \"a\": 1,\n  \"b\": [\n    \"x\",\n    \"y\"\n  ],\n  \"c\": {}\n}");
}

TEST(JsonWriter, EscapesWhatJsonMustEscapeAndNothingElse) {
  EXPECT_EQ(json_of("q\" b\\ s/ n\n r\r t\t b\b f\f"), R"("q\" b\\ s/ n\n r\r t\t b\b f\f")");
  EXPECT_EQ(json_of(std::string("\0\x1f\x7f", 3)), "\"\\u0000\\u001f\x7f\"");
  EXPECT_EQ(json_of("Grüße 日本 🎉"), "\"Grüße 日本 🎉\"");
}

// httpx ends a line at each of them, and with it a streamed event.
TEST(JsonWriter, LeavesNoLineBreakOfUnicodeInAString) {
  EXPECT_EQ(json_of("a\u0085b\u2028c\u2029d\u2027\u0084"), "\"a\\u0085b\\u2028c\\u2029d\u2027\u0084\"");
  std::string out;
  append_without_line_breaks("{\"a\":\"\u2028é\u0085€\"}", out);
  EXPECT_EQ(out, "{\"a\":\"\\u2028é\\u0085€\"}");
  out.clear();
  append_without_line_breaks("\xE2\x80", out);  // cut short
  EXPECT_EQ(out, "\xE2\x80");
}

TEST(JsonWriter, ReplacesEachInvalidPieceByOneReplacementCharacter) {
  EXPECT_EQ(json_of("a\xFFz"), "\"a\xEF\xBF\xBDz\"");
  EXPECT_EQ(json_of("\xE2\x82"), "\"\xEF\xBF\xBD\"");                                   // cut short
  EXPECT_EQ(json_of("\xE2\x82!"), "\"\xEF\xBF\xBD!\"");                                 // broken off
  EXPECT_EQ(json_of("\xC0\xAF"), "\"\xEF\xBF\xBD\xEF\xBF\xBD\"");                       // overlong
  EXPECT_EQ(json_of("\xED\xA0\x80"), "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"");       // surrogate
  EXPECT_EQ(json_of("\xF4\x90\x80\x80").size(), 2 + 4 * kReplacementCharacter.size());  // above U+10FFFF
}

TEST(JsonWriter, WritesValidUtf8ForAnyBytes) {
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    std::string bytes(random() % 40, '\0');
    // Mostly lead and continuation bytes, so that almost-valid sequences are common.
    for (char& byte : bytes)
      byte = static_cast<char>(random() % 4 == 0 ? random() % 256 : 0x80 + random() % 128);
    EXPECT_TRUE(is_valid_utf8(json_of(bytes)));
    EXPECT_EQ(to_valid_utf8(bytes) == bytes, is_valid_utf8(bytes));
  }
}

TEST(JsonWriter, WritesIntegersOfEveryWidthInFull) {
  EXPECT_EQ(json_of(std::numeric_limits<std::int64_t>::min()), "-9223372036854775808");
  EXPECT_EQ(json_of(std::numeric_limits<std::uint64_t>::max()), "18446744073709551615");
  EXPECT_EQ(json_of(std::int32_t{-7}), "-7");
}

TEST(JsonWriter, WritesTheShortestNumberThatReadsBackTheSame) {
  EXPECT_EQ(json_of(0.1), "0.1");
  EXPECT_EQ(json_of(0.1f), "0.1");
  EXPECT_EQ(json_of(1.0), "1");
  EXPECT_EQ(json_of(1e300), "1e+300");
  EXPECT_EQ(json_of(-0.0), "-0");
  EXPECT_EQ(std::stod(json_of(1.0 / 3)), 1.0 / 3);
}

TEST(JsonWriter, WritesNullOrTheStandInForNumbersJsonLacks) {
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(json_of(infinity), "null");
  EXPECT_EQ(json_of(std::numeric_limits<float>::quiet_NaN()), "null");
  std::string out;
  JsonWriter(out).number(-infinity, -9999.0);
  EXPECT_EQ(out, "-9999");
}

TEST(JsonWriter, WritesNullForNothing) {
  std::string out;
  JsonWriter(out).begin_object().member("a", std::optional<double>()).member("b", std::optional<int>(3)).end_object();
  EXPECT_EQ(out, R"({"a":null,"b":3})");
}

TEST(JsonWriterDeathTest, StopsOnCallsOutOfOrder) {
  std::string out;
  EXPECT_DEATH(JsonWriter(out).begin_object().value(1), "have_key_");
  EXPECT_DEATH(JsonWriter(out).begin_array().end_object(), "CHECK");
  EXPECT_DEATH(JsonWriter(out).value(1).value(2), "done_");
}

}  // namespace
}  // namespace kvasir::json_writer_test
