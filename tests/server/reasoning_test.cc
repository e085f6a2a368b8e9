// The reasoning of each family, however the answer is cut.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/api/thinking.h"
#include "server/api/tool_calls/detect_syntax.h"
#include "server/api/tool_calls/reasoning_tokens.h"
#include "text/testing/synthetic_vocab.h"
#include "tool_call_reading.h"

namespace kvasir::server::reasoning_test {
namespace {

const std::string kCall = R"(<tool_call>{"name": "weather", "arguments": {"city": "Rome"}}</tool_call>)";
constexpr api::ReasoningMarks kThink = {"<think>", "</think>"};

api::ToolCallReading thinking_reading(std::string_view family, const api::ReasoningMarks& marks = kThink) {
  api::ToolCallReading reading = reading_of(family);
  reading.reasoning_marks = {marks};
  return reading;
}

// A row of the table: the family whose frame goes with the marks, an answer and its parts.
struct ThoughtCase {
  std::string_view family;
  api::ReasoningMarks marks;
  std::string answer, reasoning, text;
  std::size_t num_calls = 0;
  std::vector<std::string> hidden = {};
};

const std::vector<ThoughtCase> kCases = {
    {"hermes", kThink, "<think>\nA plan.\n</think>\n\nHello.", "A plan.", "Hello."},
    {"hermes", kThink, "<think>\n\n</think>\n\nHello.", "", "Hello."},
    {"hermes", kThink, "<think>One " + kCall + "</think>\n" + kCall, "One " + kCall, "", 1},
    {"hermes", kThink, "\n <think>A</think> B </think>", "A", "B </think>"},
    {"hermes", kThink, "<think>A</think>\n<think>\nB\n</think>\nC", "A\nB", "C"},
    {"hermes", kThink, "<think>A\n\nB  ", "A\n\nB", ""},
    {"hermes", kThink, "<think>A</thin", "A</thin", ""},
    {"hermes", kThink, " Use the <think> mark. </think>", "", " Use the <think> mark. </think>"},
    {"hermes", kThink, "Well.<think>A</think>\nB", "A", "Well.\nB", 0, {"<think>", "</think>"}},
    {"hermes", kThink, "<thinking>A</thinking>B", "", "<thinking>A</thinking>B"},
    {"qwen3-coder", kThink,
     "<think>\nNow.\n</think>\n\n<tool_call>\n<function=weather>\n<parameter=city>\n<think>\n</parameter>\n"
     "</function>\n</tool_call>",
     "Now.", "", 1},
    {"glm-4.5", kThink,
     "\n<think>Look.</think>\nI look.\n<tool_call>weather\n<arg_key>city</arg_key>\n<arg_value>Rome</arg_value>\n"
     "</tool_call>",
     "Look.", "I look.\n", 1},
    {"deepseek-v3.1", kThink,
     "<think>I call.</think><｜tool▁calls▁begin｜><｜tool▁call▁begin｜>weather<｜tool▁sep｜>{\"city\": "
     "\"Rome\"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
     "I call.", "", 1},
    {"deepseek-v3", kThink,
     "<think>\nI call.\n</think>\n\n<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>weather\n```json\n"
     "{\"city\": \"Rome\"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
     "I call.", "", 1},
    {"mistral-args", {"[THINK]", "[/THINK]"},
     "[THINK]Rome it is.[/THINK]Sure.[TOOL_CALLS]weather[ARGS]{\"city\": \"[THINK]\"}", "Rome it is.", "Sure.", 1},
    {"command-r7b", {"<|START_THINKING|>", "<|END_THINKING|>"},
     "<|START_THINKING|>I look.<|END_THINKING|><|START_ACTION|>[{\"tool_call_id\": \"0\", \"tool_name\": "
     "\"weather\", \"parameters\": {\"city\": \"Rome\"}}]<|END_ACTION|>",
     "I look.", "", 1},
    {"gemma4", {"<|channel>thought", "<channel|>"},
     "<|channel>thought\nI look.<channel|>Now.<|tool_call>call:weather{city:<|\"|>Rome<|\"|>}<tool_call|>", "I look.",
     "Now.", 1},
    {"minimax-m2", kThink,
     "<think>I look.</think>\n\n<minimax:tool_call>\n<invoke name=\"weather\">\n<parameter name=\"city\">Rome"
     "</parameter>\n</invoke>\n</minimax:tool_call>",
     "I look.", "", 1},
    {"kimi-k3", {"<|open|>think<|sep|>", "<|close|>think<|sep|>"},
     "<|open|>think<|sep|>Hm.<|close|>think<|sep|><|open|>response<|sep|>Now.<|close|>response<|sep|>", "Hm.", "Now."},
    {"gpt-oss", {"<|channel|>analysis<|message|>", "<|end|>"},
     "<|channel|>analysis<|message|>A to=functions.add thought.<|end|><|start|>assistant<|channel|>final<|message|>"
     "The answer.<|return|>",
     "A to=functions.add thought.", "The answer."},
    {"gpt-oss", {"<|channel|>analysis<|message|>", "<|end|>"},
     "<|channel|>analysis<|message|>One.<|end|><|start|>assistant<|channel|>commentary<|message|>I look.<|end|>"
     "<|start|>assistant<|channel|>analysis<|message|>Two.<|end|><|start|>assistant<|channel|>commentary "
     "to=functions.weather <|constrain|>json<|message|>{\"city\": \"<|channel|>analysis<|message|>\"}<|call|>",
     "One.\nTwo.", "I look.", 1,
     {"<|start|>", "<|channel|>", "<|message|>", "<|end|>", "<|constrain|>", "<|call|>", "<|return|>"}},
    {"hermes", {"Here is my thought process:", "Here is my response:"},
     "Here is my thought process:\nFirst.\n\nHere is my response:\nHello.", "First.", "Hello."},
};

TEST(Reasoning, OfEachFamilyIsSplitOffInEveryCut) {
  for (const ThoughtCase& wanted : kCases) {
    api::ToolCallReading reading = thinking_reading(wanted.family, wanted.marks);
    reading.hidden_marks = wanted.hidden;
    const JoinedAnswer answer = read_all_cuts(reading, wanted.answer);
    EXPECT_EQ(answer.reasoning, wanted.reasoning) << wanted.answer;
    EXPECT_EQ(answer.text, wanted.text) << wanted.answer;
    EXPECT_EQ(answer.calls.size(), wanted.num_calls) << wanted.answer;
  }
}

// The same with control tokens for marks, and without tools.
TEST(Reasoning, HasTheMarksOfEachFamily) {
  for (const api::ReasoningMarks& marks : api::reasoning_marks()) {
    const std::string open(marks.open), close(marks.close);
    for (const bool has_tools : {true, false}) {
      for (const bool are_hidden : {true, false}) {
        api::ToolCallReading reading = thinking_reading("hermes", marks);
        if (!has_tools) reading.tools.clear();
        if (are_hidden) reading.hidden_marks = {open, close};
        const JoinedAnswer answer = read_all_cuts(reading, open + "\n I think.\n" + close + "\n\nI say.\n");
        EXPECT_EQ(answer.reasoning, "I think.") << open;
        EXPECT_EQ(answer.text, "I say.\n") << open;
      }
    }
  }
}

TEST(Reasoning, ThatThePromptBeganIsSplitOff) {
  api::ToolCallReading reading = thinking_reading("hermes");
  reading.starts_in_reasoning = true;
  JoinedAnswer answer = read_all_cuts(reading, "\nHm. " + kCall + "\n</think>\n\nSo." + kCall);
  EXPECT_EQ(answer.reasoning, "Hm. " + kCall);
  EXPECT_EQ(answer.text, "So.");
  EXPECT_EQ(answer.calls.size(), 1u);
  answer = read_all_cuts(reading, "<think>\nHm, <think> again.</think>So.");  // some begin it once more
  EXPECT_EQ(answer.reasoning, "Hm, <think> again.");
  EXPECT_EQ(answer.text, "So.");
}

TEST(Reasoning, IsLeftOutOrTextWhereTheRequestSaysSo) {
  api::ToolCallReading reading = thinking_reading("hermes");
  reading.reasoning_form = api::ReasoningForm::kLeftOut;
  JoinedAnswer answer = read_all_cuts(reading, "<think>Hm. " + kCall + "</think>\nSo." + kCall);
  EXPECT_EQ(answer.reasoning, "");
  EXPECT_EQ(answer.text, "So.");
  EXPECT_EQ(answer.calls.size(), 1u);
  reading.reasoning_form = api::ReasoningForm::kText;
  answer = read_all_cuts(reading, "\n<think>Hm. " + kCall + "</think>\nSo." + kCall);
  EXPECT_EQ(answer.reasoning, "");
  EXPECT_EQ(answer.text, "\n<think>Hm. " + kCall + "</think>\nSo.");
  EXPECT_EQ(answer.calls.size(), 1u);
}

TEST(Reasoning, IsFollowedByMarksOfTheAnswer) {
  api::ToolCallReading reading = thinking_reading("hermes");
  reading.answer_marks = {{"<answer>", "</answer>"}};
  EXPECT_EQ(read_all_cuts(reading, "<think>A</think>\n<answer>\nB</answer>").text, "B");
  EXPECT_EQ(read_all_cuts(reading, "<think>A</think>\nB <answer>C</answer>").text, "B <answer>C</answer>");
  EXPECT_EQ(read_all_cuts(reading, "<answer>C</answer>").text, "<answer>C</answer>");
}

std::unique_ptr<text::Tokenizer> tokenizer_with(const std::vector<std::string>& control_tokens) {
  text::VocabData data = text::byte_level_vocab({{"Q", "Q"}});
  for (const std::string& token : control_tokens) text::add_token(data, token, text::TokenType::kControl);
  return text::Tokenizer::create(std::move(data)).value();
}

std::string marks_of(const std::string& source, const std::vector<std::string>& control_tokens = {}) {
  const auto parsed = text::ChatTemplate::parse(source);
  EXPECT_TRUE(parsed) << source;
  std::string found;
  for (const api::ReasoningMarks& marks :
       api::detect_reasoning_marks(*parsed, *tokenizer_with(control_tokens))) {
    found += (found.empty() ? "" : " ") + std::string(marks.open);
  }
  return found;
}

TEST(Reasoning, IsKnownByTheTemplateOrTheVocabulary) {
  EXPECT_EQ(marks_of("{{ messages }}"), "");
  EXPECT_EQ(marks_of("{{ messages }}", {"[THINK]"}), "[THINK]");
  EXPECT_EQ(marks_of("{{ messages }}{% if add_generation_prompt %}<think>\n{% endif %}"), "<think>");
  EXPECT_EQ(marks_of("{% set tag = 'think' %}{% if add_generation_prompt %}{{ '<|open|>' + tag + '<|sep|>' }}{% endif %}"),
            "<|open|>think<|sep|>");
  for (const auto& [name, marks] : std::vector<std::pair<std::string, std::string>>{
           {"qwen3", "<think>"}, {"hermes", ""}, {"llama3", ""}, {"smollm2", ""}, {"gemma3", ""}, {"phi3", ""}}) {
    std::ifstream file(KVASIR_SOURCE_DIR "/tests/cases/template/families/" + name + ".jinja");
    EXPECT_EQ(marks_of({std::istreambuf_iterator<char>(file), {}}), marks) << name;
  }
}

TEST(Reasoning, TokensAreCountedWithTheirMarks) {
  const auto tokenizer = tokenizer_with({"<think>", "</think>"});
  api::ToolCallReading reading = thinking_reading("hermes");
  reading.hidden_marks = {"<think>", "</think>"};
  api::ReasoningTokens tokens(reading, *tokenizer);
  tokens.add(tokenizer->encode("<think>abc</think>de", {.parse_special = true, .add_special = false}));
  EXPECT_EQ(tokens.count(), 5);
}

std::string told(const api::ThinkingWish& wish, const std::string& source) {
  api::ChatRequest request;
  request.thinking = wish;
  request.template_kwargs.emplace_back("thinking", jinja::Value::string("x"));
  text::ChatTemplateInputs inputs;
  inputs.messages = text::make_messages({});
  inputs.extra = api::template_variables(request, source);
  return text::ChatTemplate::parse(source)->render(text::make_globals(inputs)).value();
}

TEST(Reasoning, WishesAreToldInTheWordsThatTemplatesRead) {
  const std::string all = "{{ enable_thinking }} {{ thinking }} {{ reasoning_effort }} {{ thinking_budget }}";
  EXPECT_EQ(told({}, all), " x  ");
  EXPECT_EQ(told({.is_enabled = false}, all), "False x  ");
  EXPECT_EQ(told({.effort = "high"}, all), "True x high ");
  EXPECT_EQ(told({.is_enabled = false, .effort = "high", .budget_tokens = 64}, all), "False x high 64");
  EXPECT_EQ(told({.effort = "none"}, all), "False x low ");
  EXPECT_EQ(told({.effort = "none"}, all + "{% if reasoning_effort == 'none' %}!{% endif %}"), "False x none !");
  api::Warnings warnings;
  const api::ThinkingWish wish{
      .effort = "high", .effort_field = "e", .budget_tokens = 64, .budget_field = "b"};
  api::warn_unread_wishes(wish, all, warnings);
  EXPECT_TRUE(warnings.messages.empty());
  api::warn_unread_wishes(wish, "{{ enable_thinking }}", warnings);
  EXPECT_EQ(warnings.messages.size(), 2u);
}

TEST(Reasoning, AWishToThinkIsNamedWhereTheTemplateHasNoWordForIt) {
  for (const std::string_view source : {"{{ enable_thinking }}", "<think>", "{{ message.reasoning_content }}"}) {
    EXPECT_TRUE(api::knows_thinking(source)) << source;
  }
  api::Warnings warnings;
  api::warn_unread_wishes({.switch_field = "thinking"}, "<think>", warnings);
  EXPECT_TRUE(warnings.messages.empty());
  api::warn_unread_wishes({.switch_field = "thinking"}, "{{ messages }}", warnings);
  ASSERT_EQ(warnings.messages.size(), 1u);
  EXPECT_EQ(warnings.messages[0],
            "thinking is left out: the chat template has no word for thinking, so nothing is split off");
}

}  // namespace
}  // namespace kvasir::server::reasoning_test
