#include "scripted_engine.h"

#include <gtest/gtest.h>

#include <utility>

namespace kvasir::server::scripted_engine_test {
namespace {

constexpr char kTemplate[] = "{% for m in messages %}<|im_start|>{{ m.content }}{% endfor %}";

struct Answer {
  std::string text;
  RequestOutput last;
  int num_outputs = 0;
};

Answer answer_to(ScriptedEngine& engine, const std::string& prompt, SamplingParams sampling = {}) {
  Answer answer;
  Request request;
  request.prompt_token_ids = engine.encode(prompt).value();
  request.sampling = std::move(sampling);
  EXPECT_TRUE(engine.submit(std::move(request), [&](RequestOutput output) {
    answer.text += output.text;
    ++answer.num_outputs;
    answer.last = std::move(output);
  }));
  return answer;
}

std::unique_ptr<ScriptedEngine> engine_with(std::vector<ScriptRule> script) {
  return ScriptedEngine::create({.chat_template = kTemplate, .script = std::move(script)}).value();
}

TEST(ScriptedEngine, TheFirstRuleThatFitsAnswers) {
  const auto engine = engine_with({{"sum", "4"}, {"", "so?"}});
  const Answer sum = answer_to(*engine, "the sum");
  EXPECT_EQ(sum.text, "4");
  EXPECT_EQ(sum.num_outputs, 2);
  EXPECT_EQ(sum.last.finish_reason, FinishReason::kStop);
  EXPECT_TRUE(sum.last.request_finished);
  EXPECT_EQ(sum.last.usage.completion_tokens, 2);
  EXPECT_EQ(answer_to(*engine, "hello").text, "so?");
  engine->set_script({});
  EXPECT_EQ(answer_to(*engine, "hello").text, "");
  EXPECT_EQ(engine->last_prompt(), "hello");
}

TEST(ScriptedEngine, LimitsEndAnAnswer) {
  const auto engine = engine_with({{"", "one two three"}});
  const Answer cut = answer_to(*engine, "a", {.max_tokens = 3});
  EXPECT_EQ(cut.text, "one");
  EXPECT_EQ(cut.last.finish_reason, FinishReason::kLength);
  const Answer stopped = answer_to(*engine, "a", {.stop = {" th"}});
  EXPECT_EQ(stopped.text, "one two");
  EXPECT_EQ(stopped.last.stop_string, " th");
}

TEST(ScriptedEngine, ShowsControlTokensThatAreAskedFor) {
  const auto engine = engine_with({{"", "a<|im_start|>b"}});
  EXPECT_EQ(answer_to(*engine, "a").text, "ab");
  EXPECT_EQ(answer_to(*engine, "a", {.skip_special_tokens = false}).text, "a<|im_start|>b");
}

}  // namespace
}  // namespace kvasir::server::scripted_engine_test
