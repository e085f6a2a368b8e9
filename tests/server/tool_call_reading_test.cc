#include "server/api/tool_calls/tool_call_reading.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/api/tool_calls/reasoning_block.h"
#include "text/testing/synthetic_vocab.h"

namespace kvasir::server::tool_call_reading_test {
namespace {

std::unique_ptr<text::Tokenizer> tokenizer_with(const std::vector<std::string>& control_tokens) {
  text::VocabData data = text::byte_level_vocab({{"Q", "Q"}});
  for (const std::string& token : control_tokens) text::add_token(data, token, text::TokenType::kControl);
  return text::Tokenizer::create(std::move(data)).value();
}

bool ends_in_reasoning(std::string_view prompt, const std::vector<std::string>& more_tokens = {},
                       bool is_continued = false) {
  std::vector<std::string> control_tokens = {"<|im_start|>", "<|im_end|>"};
  control_tokens.insert(control_tokens.end(), more_tokens.begin(), more_tokens.end());
  const auto tokenizer = tokenizer_with(control_tokens);
  return api::ends_in_reasoning(tokenizer->encode(prompt, {.parse_special = true, .add_special = false}),
                                *tokenizer, is_continued);
}

TEST(ToolCallReading, SeesReasoningThatThePromptBegins) {
  const std::string turn = "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n";
  EXPECT_FALSE(ends_in_reasoning(turn));
  EXPECT_TRUE(ends_in_reasoning(turn + "<think>\n"));
  EXPECT_TRUE(ends_in_reasoning(turn + "<think>\n", {"<think>", "</think>"}));
  EXPECT_TRUE(ends_in_reasoning(turn + "<think>\nI begin to think", {}, true));  // an answer that is continued
  EXPECT_FALSE(ends_in_reasoning("User: why <think> and then?\nAssistant:"));  // a template without control tokens
  EXPECT_TRUE(ends_in_reasoning("User: why?\nAssistant: <think>\n"));
  EXPECT_FALSE(ends_in_reasoning(turn + "<think>\n\n</think>\n\n"));
  EXPECT_FALSE(ends_in_reasoning(turn + "<think>\n\n</think>\n\n", {"<think>", "</think>"}));
  EXPECT_FALSE(ends_in_reasoning("<|im_start|>user\nWhy <think>?<|im_end|>\n<|im_start|>assistant\n"));
  EXPECT_FALSE(ends_in_reasoning(""));
  EXPECT_TRUE(ends_in_reasoning(turn + "<think>\n<|go|>", {"<|go|>"}));
  EXPECT_FALSE(ends_in_reasoning(turn + "<think>\n\n</think>\n\n<|go|>", {"<|go|>"}));
  EXPECT_FALSE(ends_in_reasoning("[INST]Why <think> and then?[/INST]", {"[INST]", "[/INST]"}));
}

TEST(ToolCallReading, ShowsTheReaderItsMarksAndNoOtherControlTokens) {
  const auto tokenizer = tokenizer_with({"<|im_end|>", "<tool_call>", "</tool_call>", "<think>", "[ARGS]"});
  const api::ModelSyntax hermes = api::model_syntax(&api::tool_call_syntax("hermes"), *tokenizer);
  EXPECT_EQ(hermes.mark_texts, (std::vector<std::string>{"<tool_call>", "</tool_call>", "<think>"}));
  ASSERT_EQ(hermes.mark_tokens.size(), 3u);
  EXPECT_EQ(tokenizer->decode_token(hermes.mark_tokens[0], true), "<tool_call>");
  EXPECT_TRUE(api::model_syntax(nullptr, *tokenizer).mark_tokens.empty());
}

}  // namespace
}  // namespace kvasir::server::tool_call_reading_test
