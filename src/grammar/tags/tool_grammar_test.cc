#include "grammar/tags/tool_grammar.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/testing/time_bar.h"
#include "grammar/testing/tool_answers.h"

namespace kvasir::grammar::tool_grammar_test {
namespace {

constexpr const char* kWeather =
    R"({"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer","minimum":1,"maximum":9}},)"
    R"("required":["city"],"additionalProperties":false})";
constexpr const char* kAdd =
    R"({"type":"object","properties":{"a":{"type":"number"},"b":{"type":"array","items":{"type":"number"}}},)"
    R"("required":["a","b"],"additionalProperties":false})";

ToolGuide guide_of(std::string_view family) {
  return {.family = std::string(family),
          .tools = {{.name = "weather", .schema = kWeather, .text_arguments = {"city"}}, {.name = "add", .schema = kAdd}}};
}

ToolAnswers answers_of(const ToolGuide& guide, const std::vector<std::string>& tokens = {}, std::string_view ends = {}) {
  auto answers = ToolAnswers::create(guide, tokens, ends);
  EXPECT_TRUE(answers.has_value()) << (answers ? "" : answers.error().message);
  return *answers;
}

TEST(ToolGrammar, DemandedCallsAreAllThatThereIs) {
  const ToolAnswers answers = answers_of(guide_of("hermes"));
  const std::string rome = "<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Rome\", \"days\": 3}}\n</tool_call>";
  const std::string sum = "<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": 1.5, \"b\": [2, 3]}}\n</tool_call>";
  EXPECT_TRUE(answers.accepts(rome));
  EXPECT_TRUE(answers.accepts(rome + "\n" + sum));
  EXPECT_FALSE(answers.accepts(""));
  EXPECT_FALSE(answers.accepts("It is warm."));
  EXPECT_FALSE(answers.accepts("So: " + rome));
  EXPECT_FALSE(answers.accepts(rome + "So."));
  EXPECT_FALSE(answers.accepts("<tool_call>\n{\"name\": \"other\", \"arguments\": {}}\n</tool_call>"));
  EXPECT_FALSE(answers.accepts("<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"days\": 3}}\n</tool_call>"));
  EXPECT_FALSE(answers.accepts("<tool_call>\n{\"name\": \"add\", \"arguments\": {\"city\": \"Rome\"}}\n</tool_call>"));
}

TEST(ToolGrammar, TextsMayComeFirstWhereNothingIsDemanded) {
  ToolGuide guide = guide_of("hermes");
  guide.is_demanded = false;
  const ToolAnswers answers = answers_of(guide);
  const std::string rome = "<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Rome\"}}\n</tool_call>";
  for (const std::string& answer : {std::string(), std::string("It is 20° < 30°."), rome, "Let me see.\n" + rome,
                                    "a <tool_cal " + rome, std::string("the mark <tool_call"),
                                    std::string("<think>I could <tool_call>")}) {
    EXPECT_TRUE(answers.accepts(answer)) << answer;
  }
  for (const char* answer : {"<tool_call> is a mark", "Hm <tool_call>\n{\"name\": \"rain\"",
                             "<think>I could</think> <tool_call>"}) {
    EXPECT_FALSE(answers.accepts(answer)) << answer;
  }
  EXPECT_FALSE(answers.accepts(rome + " That was it."));
}

TEST(ToolGrammar, ATextMayHaveAFormOfItsOwn) {
  ToolGuide guide = guide_of("hermes");
  guide.is_demanded = false;
  const auto answers = ToolAnswers::create(guide, {}, {}, {}, {.is_free = false, .schema = R"({"type":"object"})"});
  ASSERT_TRUE(answers.has_value()) << answers.error().message;
  const std::string rome = "<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Rome\"}}\n</tool_call>";
  EXPECT_TRUE(answers->accepts(rome));
  EXPECT_TRUE(answers->accepts("{\"a\": \"<tool_cal\"}"));
  EXPECT_FALSE(answers->accepts("{\"a\": \"<tool_call>\"}"));
  EXPECT_FALSE(answers->accepts("Rome"));
  EXPECT_FALSE(answers->accepts("{}" + rome));
  guide.family = "llama-3";
  EXPECT_FALSE(ToolAnswers::create(guide, {}, {}, {}, {.is_free = false, .schema = R"({"type":"object"})"}).has_value());
}

TEST(ToolGrammar, MarksThatAreControlTokensAreNoText) {
  const std::vector<std::string> tokens = {"[TOOL_CALLS]", "[ARGS]", "[CALL_ID]", "</s>"};
  ToolGuide guide = guide_of("mistral-args");
  guide.is_demanded = false;
  const ToolAnswers answers = answers_of(guide, tokens, "</s>");
  EXPECT_TRUE(answers.accepts("[TOOL_CALLS]weather[ARGS]{\"city\": \"Rome\"}"));
  EXPECT_TRUE(answers.accepts("Well.[TOOL_CALLS]weather[CALL_ID]abcdefghi[ARGS]{\"city\": \"Rome\"}[TOOL_CALLS]add[ARGS]{\"a\": 1, \"b\": []}"));
  EXPECT_FALSE(answers.accepts("Well.[ARGS]"));
  EXPECT_FALSE(answers.accepts("</s>"));
}

TEST(ToolGrammar, MembersThatNoSchemaNamesAreLeftOut) {
  ToolGuide guide = {.family = "hermes",
                     .tools = {{.name = "open", .schema = R"({"type":"object","properties":{"a":{"type":"integer"}}})"},
                               {.name = "any", .schema = R"({"type":"object"})"}}};
  const ToolAnswers answers = answers_of(guide);
  EXPECT_TRUE(answers.accepts("<tool_call>{\"name\": \"open\", \"arguments\": {\"a\": 1}}</tool_call>"));
  EXPECT_FALSE(answers.accepts("<tool_call>{\"name\": \"open\", \"arguments\": {\"b\": 1}}</tool_call>"));
  EXPECT_TRUE(answers.accepts("<tool_call>{\"name\": \"any\", \"arguments\": {\"b\": 1}}</tool_call>"));
}

TEST(ToolGrammar, AMarkThatEndsTheAnswerIsLeftOut) {
  const std::vector<std::string> tokens = {"<|channel|>", "<|message|>", "<|call|>", "<|end|>", "<|start|>", "<|constrain|>"};
  ToolGuide guide = guide_of("gpt-oss");
  guide.thoughts = {{"<|channel|>analysis<|message|>", "<|end|>"}};
  const std::string call = "<|channel|>commentary to=functions.weather <|constrain|>json<|message|>{\"city\": \"Rome\"}";
  const ToolAnswers answers = answers_of(guide, tokens, "<|call|>");
  EXPECT_TRUE(answers.accepts(call));
  EXPECT_TRUE(answers.accepts("<|channel|>analysis<|message|>Rome, then.<|end|><|start|>assistant" + call));
  EXPECT_FALSE(answers.accepts(call + "<|call|>"));
  EXPECT_FALSE(answers.accepts("<|channel|>final<|message|>Rome."));
  guide.is_demanded = false;
  const ToolAnswers free = answers_of(guide, tokens, "<|call|>");
  EXPECT_TRUE(free.accepts("<|channel|>final<|message|>Rome."));
  EXPECT_TRUE(free.accepts("<|channel|>commentary<|message|>I look.<|end|><|start|>assistant" + call));
  EXPECT_FALSE(free.accepts("Rome."));
}

TEST(ToolGrammar, ThoughtsGoFirst) {
  ToolGuide guide = guide_of("hermes");
  guide.thoughts = {{"<think>", "</think>"}};
  const std::string call = "<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Rome\"}}\n</tool_call>";
  const ToolAnswers may = answers_of(guide);
  EXPECT_TRUE(may.accepts(call));
  EXPECT_TRUE(may.accepts("<think>\nIs <tool_call> right?\n</think>\n\n" + call));
  EXPECT_FALSE(may.accepts("<think>\nHm.\n</think>\n\nHm." + call));
  guide.starts_in_thoughts = true;
  const ToolAnswers open = answers_of(guide);
  EXPECT_TRUE(open.accepts("Hm.\n</think>\n\n" + call));
  EXPECT_FALSE(open.accepts(call));
}

TEST(ToolGrammar, ATextMayHoldThoughtsAndTheirMarks) {
  ToolGuide guide = guide_of("hermes");
  guide.is_demanded = false;
  const std::string call = "<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Rome\"}}\n</tool_call>";
  const ToolAnswers answers = answers_of(guide);
  for (const std::string text : {"<think>Is <tool_call>{}</tool_call> right?</think>No.", "Well. <think>Hm</think> <think>Hm",
                                 "The tags <reasoning> and </think>", "[THINK]x[/THINK]y<thought>z"}) {
    EXPECT_TRUE(answers.accepts(text)) << text;
  }
  EXPECT_TRUE(answers.accepts("Well. <think>A <tool_call> it is.</think>So: " + call));
  EXPECT_FALSE(answers.accepts("<think>Hm</think>a <tool_call> b"));
  EXPECT_FALSE(answers.accepts("a <tool_call> b <think>Hm</think>"));
}

TEST(ToolGrammar, APromptMayHaveBegunTheCall) {
  ToolGuide guide = guide_of("hermes");
  guide.prompt_mark = "<tool_call>";
  const ToolAnswers answers = answers_of(guide);
  EXPECT_TRUE(answers.accepts("\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Rome\"}}\n</tool_call>"));
  EXPECT_FALSE(answers.accepts("<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Rome\"}}\n</tool_call>"));
}

TEST(ToolGrammar, ValuesWithoutQuotesKeepTheirType) {
  ToolGuide guide = {.family = "qwen3-coder",
                     .tools = {{.name = "note",
                                .schema = R"({"type":"object","properties":{"text":{"type":"string"},)"
                                          R"("value":{"type":["string","integer"],"maximum":5}},"additionalProperties":false})",
                                .text_arguments = {"text"}}}};
  const ToolAnswers answers = answers_of(guide);
  const auto call = [](const std::string& arguments) {
    return "<tool_call>\n<function=note>\n" + arguments + "</function>\n</tool_call>";
  };
  EXPECT_TRUE(answers.accepts(call("")));
  EXPECT_TRUE(answers.accepts(call("<parameter=text>\n12\nlines\n</parameter>\n")));
  EXPECT_TRUE(answers.accepts(call("<parameter=value>\nfive\n</parameter>\n")));
  EXPECT_TRUE(answers.accepts(call("<parameter=value>\n5\n</parameter>\n")));
  EXPECT_FALSE(answers.accepts(call("<parameter=value>\n12\n</parameter>\n")));
  EXPECT_FALSE(answers.accepts(call("<parameter=value>\nnull\n</parameter>\n")));
  EXPECT_FALSE(answers.accepts(call("<parameter=text>\na</parameter b\n</parameter>\n")));
  EXPECT_FALSE(answers.accepts(call("<parameter=other>\n1\n</parameter>\n")));
}

// More names than places that may run at once.
TEST(ToolGrammar, ManyToolsThatBeginAlike) {
  ToolGuide guide = {.family = "hermes"};
  for (int i = 0; i < 400; ++i) guide.tools.push_back({.name = "get_thing_" + std::to_string(i), .schema = kWeather});
  const ToolAnswers answers = answers_of(guide);
  const auto call = [](const std::string& name) {
    return "<tool_call>{\"name\": \"" + name + "\", \"arguments\": {\"city\": \"Rome\"}}</tool_call>";
  };
  EXPECT_TRUE(answers.accepts(call("get_thing_0")));
  EXPECT_TRUE(answers.accepts(call("get_thing_39")));
  EXPECT_TRUE(answers.accepts(call("get_thing_399")));
  EXPECT_FALSE(answers.accepts(call("get_thing_400")));
  EXPECT_FALSE(answers.grammar().is_exhausted());
}

// Thread processor time.
TEST(ToolGrammar, ManyToolsOfManyArgumentsCompileWithin50Milliseconds) {
  ToolGuide guide = {.family = "hermes"};
  for (int i = 0; i < 128; ++i) {
    std::string schema = R"({"type":"object","properties":{)";
    for (int j = 0; j < 50; ++j) {
      const std::string name = "argument_" + std::to_string(i) + "_" + std::to_string(j);
      const char* type = j % 3 == 0 ? "integer" : j % 3 == 1 ? "string" : "boolean";
      schema += (j == 0 ? "\"" : ",\"") + name + R"(":{"type":")" + type + R"(","description":"The )" + name + "\"}";
    }
    guide.tools.push_back({.name = "tool_" + std::to_string(i), .schema = schema + "}}"});
  }
  double ms = 1e9;  // the least of ten: other programs share the cores
  for (int i = 0; i < 10; ++i) {
    timespec begin = {}, end = {};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
    TermStore store(kMaxToolTerms);
    const auto grammar = grammar_of_tools(store, guide, {});
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
    ASSERT_TRUE(grammar.has_value()) << grammar.error().message;
    ms = std::min(ms, static_cast<double>(end.tv_sec - begin.tv_sec) * 1e3 +
                          static_cast<double>(end.tv_nsec - begin.tv_nsec) / 1e6);
  }
  EXPECT_LT(ms, time_bar_ms(50.0));
  RecordProperty("ms", std::to_string(ms));
}

TEST(ToolGrammar, FaultsNameTheTool) {
  const auto message = [](const ToolGuide& guide) {
    const auto answers = ToolAnswers::create(guide, {});
    return answers ? std::string() : answers.error().message;
  };
  ToolGuide guide = guide_of("hermes");
  guide.tools[1].schema = R"({"type":"object","properties":{"a":{"$ref":"#/$defs/b"}}})";
  EXPECT_EQ(message(guide), "tool 'add': '/properties/a/$ref': '#/$defs/b' is not in this document");
  guide.tools[1].schema = R"({"type":"array"})";
  EXPECT_EQ(message(guide),
            "tool 'add': no arguments satisfy the schema, or calls of the model's template cannot write them");
  guide.family = "qwen3-coder";
  guide.tools[1] = {.name = "a>b"};
  EXPECT_EQ(message(guide), "tool 'a>b': calls of the model's template cannot name it");
  guide.family = "unheard";
  EXPECT_EQ(message(guide), "tools: no family 'unheard' is known");
}

}  // namespace
}  // namespace kvasir::grammar::tool_grammar_test
