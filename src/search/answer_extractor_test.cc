#include "search/answer_extractor.h"

#include <gtest/gtest.h>

namespace kvasir::search::answer_extractor_test {
namespace {

TEST(AnswerExtractor, TakesTheLastNumber) {
  const auto number = [](std::string_view text) { return extract_answer(AnswerForm::kNumber, text).value_or("none"); };
  EXPECT_EQ(number("12 + 30 = 42."), "42");
  EXPECT_EQ(number("It costs $1,200.50 in all"), "1200.5");
  EXPECT_EQ(number("-7"), "-7");
  EXPECT_EQ(number("10-3"), "3");
  EXPECT_EQ(number("1, 2, 3"), "3");
  EXPECT_EQ(number("12,34"), "34");
  EXPECT_EQ(number("007"), "7");
  EXPECT_EQ(number("0.50"), "0.5");
  EXPECT_EQ(number("-0"), "0");
  EXPECT_EQ(number("3.0 litres"), "3");
  EXPECT_EQ(number("1,000,000"), "1000000");
  EXPECT_EQ(number("no idea"), "none");
  EXPECT_EQ(number(""), "none");
}

TEST(AnswerExtractor, FoldsCaseAndSpaces) {
  EXPECT_EQ(extract_answer(AnswerForm::kText, "  The  Blue\nBoat. "), "the blue boat");
  EXPECT_EQ(extract_answer(AnswerForm::kText, " \n "), std::nullopt);
}

}  // namespace
}  // namespace kvasir::search::answer_extractor_test
