#include "engine/active_request.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/guide_fixture.h"

namespace kvasir::guide_test {
namespace {

// Hands the answer one more token, as the scheduler would.
class AnswerUnderGuide : public GuideFixture {
 protected:
  void begin(const Guide& guide, SamplingParams params = {}) {
    params_ = std::move(params);
    choice_.text = std::make_unique<OutputProcessor>(*tokenizer_, params_);
    choice_.guide.emplace(*compiler_.compile(guide, ""), guide.field, std::vector<TokenId>{kEnd});
  }
  RequestOutput append(TokenId token, std::optional<FinishReason> reason = std::nullopt) {
    std::vector<sched::SampledToken> tokens = {{.token = token}};
    RequestOutput output;
    output.finish_reason = reason;
    choice_.append({.tokens = tokens, .finish_reason = reason}, params_.include_stop_str_in_output, output);
    text_ += output.text;
    return output;
  }
  RequestOutput append(std::string_view text) {
    RequestOutput output;
    for (const char byte : text) {
      EXPECT_FALSE(output.finish_reason) << "before " << byte;
      output = append(byte_token(byte));
    }
    return output;
  }

  SamplingParams params_;
  ActiveChoice choice_;
  std::string text_;
};

TEST_F(AnswerUnderGuide, EndsWithStopWhereNothingMayFollow) {
  begin({.text = R"({"type":"object","properties":{},"additionalProperties":false})"});
  EXPECT_FALSE(append(byte_token('{')).finish_reason);
  EXPECT_EQ(append(byte_token('}')).finish_reason, FinishReason::kStop);
  EXPECT_EQ(text_, "{}");
}

TEST_F(AnswerUnderGuide, IsCompleteAlsoWithItsLastToken) {
  begin({.kind = Guide::Kind::kChoice, .choices = {"yes"}});
  EXPECT_EQ(append(kFirstWord, FinishReason::kLength).finish_reason, FinishReason::kStop);
}

TEST_F(AnswerUnderGuide, EndsWithLengthOnItsWay) {
  begin({.kind = Guide::Kind::kRegex, .text = "[a-z]+"});
  EXPECT_EQ(append(kFirstWord, FinishReason::kLength).finish_reason, FinishReason::kLength);
}

TEST_F(AnswerUnderGuide, AStopStringCountsWhereTheTextBeforeItIsOneOfTheGuide) {
  begin({.text = R"({"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false})"},
        {.stop = {"!", "\"}"}});
  EXPECT_FALSE(append(R"({"a":"x!y)").finish_reason) << "inside of a string";
  const RequestOutput output = append("\"}");
  EXPECT_EQ(output.finish_reason, FinishReason::kStop);
  EXPECT_EQ(output.stop_string, "") << "the object would not be whole without its end";
  EXPECT_EQ(text_, R"({"a":"x!y"})");
}

TEST_F(AnswerUnderGuide, AStopStringThatIsShownMayBeTheEnd) {
  begin({.kind = Guide::Kind::kRegex, .text = "a+!*"}, {.stop = {"!"}, .include_stop_str_in_output = true});
  const RequestOutput output = append("aa!");
  EXPECT_EQ(output.stop_string, "!");
  EXPECT_EQ(text_, "aa!");
}

TEST_F(AnswerUnderGuide, AStopStringIsFoundInsideOfAToken) {
  begin({.kind = Guide::Kind::kRegex, .text = "[a-z]+"}, {.stop = {"yb"}});
  const RequestOutput output = append(kFirstWord + 2);  // "maybe"
  EXPECT_EQ(output.stop_string, "yb");
  EXPECT_EQ(text_, "ma");
}

TEST_F(AnswerUnderGuide, ATokenThatTheGuideForbidsIsAnError) {
  begin({.kind = Guide::Kind::kChoice, .choices = {"yes"}});
  const RequestOutput output = append(kFirstWord + 1);
  EXPECT_EQ(output.finish_reason, FinishReason::kError);
  ASSERT_TRUE(output.error);
  EXPECT_EQ(output.error->param, "guide");
}

}  // namespace
}  // namespace kvasir::guide_test
