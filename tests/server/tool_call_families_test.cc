// Each family's calls, however the answer is cut.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tool_call_reading.h"

namespace kvasir::server::tool_call_families_test {
namespace {

struct FamilyCase {
  const char* family;
  const char* answer;
  const char* text;
  const char* first;   // arguments of weather
  const char* second;  // of add; null: there is one call
};

constexpr const char* kRome = R"({"city":"Rome"})";
constexpr const char* kSum = R"({"a":1,"b":[2,3]})";

const FamilyCase kCases[] = {
    {"hermes",
     "Let me see.\n<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Rome\"}}\n</tool_call>\n"
     "<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": 1, \"b\": [2, 3]}}\n</tool_call>",
     "Let me see.\n", kRome, kSum},
    {"hermes",
     "<tool_call>{\"arguments\": {\"city\": \"Rome\"}, \"id\": 7, \"name\": "
     "\"weather\"}</tool_call>\n\nDone.",
     "Done.", kRome, nullptr},
    {"hermes",
     "<tool_call>{\"type\": \"function\", \"function\": {\"name\": \"weather\", \"parameters\": "
     "{\"city\": \"Rome\"}}}</tool_call>",
     "", kRome, nullptr},
    {"smollm2",
     "<tool_call>[{\"name\": \"weather\", \"arguments\": {\"city\": \"Rome\"}}, {\"name\": \"add\", "
     "\"arguments\": {\"a\": 1, \"b\": [2, 3]}}]</tool_call>",
     "", kRome, kSum},
    {"qwen3-coder",
     "Now.\n<tool_call>\n<function=weather>\n<parameter=city>\nRome\n</parameter>\n</function>\n</"
     "tool_call>\n"
     "<tool_call>\n<function=add>\n<parameter=a>\n1\n</parameter>\n<parameter=b>\n[2, 3]\n</parameter>\n"
     "</function>\n</tool_call>",
     "Now.\n", kRome, kSum},
    {"qwen3-coder", "<function=weather>\n<parameter=city>\nRome\n</parameter>\n</function>\n</tool_call>", "",
     kRome, nullptr},
    {"seed-oss",
     "<seed:tool_call>\n<function=weather>\n<parameter=city>Rome</parameter>\n</function>\n<function=add>\n"
     "<parameter=a>1</parameter>\n<parameter=b>[2,3]</parameter>\n</function>\n</seed:tool_call>",
     "", kRome, kSum},
    {"longcat",
     "So.\n<longcat_tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Rome\"}}\n</longcat_tool_call>\n"
     "<longcat_tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": 1, \"b\": [2, 3]}}\n</longcat_tool_call>",
     "So.\n", kRome, kSum},
    {"granite-20b",
     "<function_call> {\"name\": \"weather\", \"arguments\": {\"city\": \"Rome\"}}\n"
     "<function_call> {\"name\": \"add\", \"arguments\": {\"a\": 1, \"b\": [2, 3]}}",
     "", kRome, kSum},
    {"functioncall", "<functioncall> {\"name\": \"weather\", \"arguments\": {\"city\": \"Rome\"}}", "", kRome, nullptr},
    {"step-3",
     "<｜tool_calls_begin｜><｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name=\"weather\">"
     "<steptml:parameter name=\"city\">Rome</steptml:parameter></steptml:invoke><｜tool_call_end｜>"
     "<｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name=\"add\"><steptml:parameter name=\"a\">1"
     "</steptml:parameter><steptml:parameter name=\"b\">[2,3]</steptml:parameter></steptml:invoke><｜tool_call_end｜>"
     "<｜tool_calls_end｜>",
     "", kRome, kSum},
    {"minimax-m2",
     "<minimax:tool_call>\n<invoke name=\"weather\">\n<parameter name=\"city\">Rome</parameter>\n</invoke>\n"
     "<invoke name=\"add\">\n<parameter name=\"a\">1</parameter>\n<parameter name=\"b\">[2,3]</parameter>\n"
     "</invoke>\n</minimax:tool_call>",
     "", kRome, kSum},
    {"minimax-m3",
     "]<]minimax[>[<tool_call>\n]<]minimax[>[<invoke name=\"weather\">]<]minimax[>[<city>Rome]<]minimax[>[</city>"
     "]<]minimax[>[</invoke>\n]<]minimax[>[<invoke name=\"add\">]<]minimax[>[<a>1]<]minimax[>[</a>]<]minimax[>[<b>"
     "]<]minimax[>[<item>2]<]minimax[>[</item>]<]minimax[>[<item>3]<]minimax[>[</item>]<]minimax[>[</b>"
     "]<]minimax[>[</invoke>\n]<]minimax[>[</tool_call>",
     "", kRome, kSum},
    {"minimax-m3",
     "<mm:think>Hm.</mm:think>Now.]<]minimax[>[<tool_call>\n]<]minimax[>[<invoke name=\"weather\">]<]minimax[>[<where>"
     "]<]minimax[>[<street>A < B & \"C\"]<]minimax[>[</street>]<]minimax[>[<tags>]<]minimax[>[<item>x]<]minimax[>[</item>"
     "]<]minimax[>[<item>7]<]minimax[>[</item>]<]minimax[>[</tags>]<]minimax[>[</where>]<]minimax[>[</invoke>\n"
     "]<]minimax[>[</tool_call>",
     "<mm:think>Hm.</mm:think>Now.", R"({"where":{"street":"A < B & \"C\"","tags":["x",7]}})", nullptr},
    {"glm-4", "weather\n{\"city\": \"Rome\"}", "", kRome, nullptr},
    {"glm-4", "\nweather\n{\"city\": \"Rome\"}<|assistant|>add\n{\"a\": 1, \"b\": [2, 3]}", "", kRome, kSum},
    {"glm-4.5",
     "\n<tool_call>weather\n<arg_key>city</arg_key>\n<arg_value>Rome</arg_value>\n</tool_call>\n"
     "<tool_call>add\n<arg_key>a</arg_key>\n<arg_value>1</arg_value>\n<arg_key>b</arg_key>\n"
     "<arg_value>[2, 3]</arg_value>\n</tool_call>",
     "\n", kRome, kSum},
    {"mistral",
     "[TOOL_CALLS] [{\"name\": \"weather\", \"arguments\": {\"city\": \"Rome\"}, \"id\": \"abcdefghi\"}, "
     "{\"name\": \"add\", \"arguments\": {\"a\": 1, \"b\": [2, 3]}, \"id\": \"abcdefghj\"}]",
     "", kRome, kSum},
    {"mistral", " [{\"name\": \"weather\", \"arguments\": {\"city\": \"Rome\"}}]", "", kRome, nullptr},
    {"mistral-args",
     "Sure.[TOOL_CALLS]weather[ARGS]{\"city\": \"Rome\"}[TOOL_CALLS]add[ARGS]{\"a\": 1, \"b\": [2, 3]}",
     "Sure.", kRome, kSum},
    {"mistral-args",
     "[TOOL_CALLS]weather[CALL_ID]abcdefghi[ARGS]{\"city\": \"Rome\"}[TOOL_CALLS]add{\"a\": 1, \"b\": [2, "
     "3]}",
     "", kRome, kSum},
    {"functiongemma",
     "<start_function_call>call:weather{city:<escape>Rome<escape>}<end_function_call><start_function_call>"
     "call:add{a:1,b:[2,3]}<end_function_call>",
     "", kRome, kSum},
    {"gemma4",
     "I look.<|tool_call>call:weather{city:<|\"|>Rome<|\"|>}<tool_call|><|tool_call>call:add{a:1,b:[2,3]}"
     "<tool_call|>",
     "I look.", kRome, kSum},
    {"gpt-oss",
     "<|channel|>analysis<|message|>Weather and a sum.<|end|><|start|>assistant<|channel|>commentary "
     "to=functions.weather <|constrain|>json<|message|>{\"city\": \"Rome\"}<|call|><|start|>assistant"
     "<|channel|>commentary to=functions.add<|constrain|>json<|message|>{\"a\": 1, \"b\": [2, 3]}",
     "<|channel|>analysis<|message|>Weather and a sum.<|end|>", kRome, kSum},
    {"gpt-oss", " to=functions.weather<|channel|>commentary json<|message|>{\"city\": \"Rome\"}<|call|>", "",
     kRome, nullptr},
    {"deepseek-v3",
     "Yes.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>weather\n```json\n{\"city\": "
     "\"Rome\"}\n```"
     "<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>add\n```json\n{\"a\": 1, \"b\": [2, "
     "3]}\n```"
     "<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
     "Yes.", kRome, kSum},
    {"deepseek-v3.1",
     "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>weather<｜tool▁sep｜>{\"city\": \"Rome\"}<｜tool▁call▁end｜>"
     "<｜tool▁call▁begin｜>add<｜tool▁sep｜>{\"a\": 1, \"b\": [2, 3]}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
     "", kRome, kSum},
    {"kimi-k2",
     "<|tool_calls_section_begin|><|tool_call_begin|>functions.weather:0<|tool_call_argument_begin|>"
     "{\"city\": \"Rome\"}<|tool_call_end|><|tool_call_begin|>functions.add:1<|tool_call_argument_begin|>"
     "{\"a\": 1, \"b\": [2, 3]}<|tool_call_end|><|tool_calls_section_end|>",
     "", kRome, kSum},
    {"command-r7b",
     "<|START_ACTION|>[\n    {\"tool_call_id\": \"0\", \"tool_name\": \"weather\", \"parameters\": "
     "{\"city\": "
     "\"Rome\"}},\n    {\"tool_call_id\": \"1\", \"tool_name\": \"add\", \"parameters\": {\"a\": 1, \"b\": "
     "[2, 3]}}"
     "\n]<|END_ACTION|>",
     "", kRome, kSum},
    {"command-r",
     "Action: ```json\n[\n    {\n        \"tool_name\": \"weather\",\n        \"parameters\": {\n            "
     "\"city\": \"Rome\"\n        }\n    },\n    {\"tool_name\": \"add\", \"parameters\": {\"a\": 1, \"b\": "
     "[2, 3]}}"
     "\n]```",
     "", kRome, kSum},
    {"granite-3",
     "<|tool_call|>[{\"name\": \"weather\", \"arguments\": {\"city\": \"Rome\"}}, {\"name\": \"add\", "
     "\"arguments\": {\"a\": 1, \"b\": [2, 3]}}]",
     "", kRome, kSum},
    {"phi-4-mini",
     "<|tool_call|>[{\"name\": \"weather\", \"arguments\": {\"city\": \"Rome\"}}, {\"name\": \"add\", "
     "\"arguments\": {\"a\": 1, \"b\": [2, 3]}}]<|/tool_call|>",
     "", kRome, kSum},
    {"internlm",
     "Hm.<|action_start|><|plugin|>{\"name\": \"weather\", \"parameters\": {\"city\": "
     "\"Rome\"}}<|action_end|>",
     "Hm.", kRome, nullptr},
    {"hunyuan",
     "<tool_calls>[{\"name\": \"weather\", \"arguments\": {\"city\": \"Rome\"}}, {\"name\": \"add\", "
     "\"arguments\": {\"a\": 1, \"b\": [2, 3]}}]</tool_calls>",
     "", kRome, kSum},
    {"hunyuan",
     "<tool_calls>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Rome\"}}\n{\"name\": \"add\", "
     "\"arguments\": {\"a\": 1, \"b\": [2, 3]}}\n</tool_calls>",
     "", kRome, kSum},
    {"nemotron", "<TOOLCALL>[{\"name\": \"weather\", \"arguments\": {\"city\": \"Rome\"}}]</TOOLCALL>", "",
     kRome, nullptr},
    {"functionary-3.1",
     "Look: <function=weather>{\"city\": \"Rome\"}</function>\n<function=add>{\"a\": 1, \"b\": [2, "
     "3]}</function>",
     "Look: ", kRome, kSum},
    {"firefunction",
     " functools[{\"name\": \"weather\", \"arguments\": {\"city\": \"Rome\"}}, {\"name\": \"add\", "
     "\"arguments\": {\"a\": 1, \"b\": [2, 3]}}]",
     "", kRome, kSum},
    {"lfm2", "<|tool_call_start|>[weather(city=\"Rome\"), add(a=1, b=[2, 3])]<|tool_call_end|>So.", "So.",
     kRome, kSum},
    {"olmo-3", "<function_calls>weather(city='Rome')\nadd(a=1, b=[2, 3])</function_calls>", "", kRome, kSum},
    {"llama-4-pythonic", "[weather(city=\"Rome\"), add(a=1, b=(2, 3))]", "", kRome, kSum},
    {"llama-4-pythonic", "<|python_start|>[weather(city=\"Rome\")]<|python_end|>", "", kRome, nullptr},
    {"llama-3", "{\"name\": \"weather\", \"parameters\": {\"city\": \"Rome\"}}", "", kRome, nullptr},
    {"llama-3",
     "<|python_tag|>{\"name\": \"weather\", \"parameters\": {\"city\": \"Rome\"}}; {\"name\": \"add\", "
     "\"parameters\": {\"a\": 1, \"b\": [2, 3]}}",
     "", kRome, kSum},
    {"deepseek-v3.2",
     "Yes.\n\n<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"weather\">\n<｜DSML｜parameter name=\"city\" "
     "string=\"true\">Rome</｜DSML｜parameter>\n</｜DSML｜invoke>\n<｜DSML｜invoke "
     "name=\"add\">\n<｜DSML｜parameter "
     "name=\"a\" string=\"false\">1</｜DSML｜parameter>\n<｜DSML｜parameter name=\"b\" string=\"false\">[2, "
     "3]</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>",
     "Yes.\n\n", kRome, kSum},
    {"deepseek-v4",
     "<｜DSML｜tool_calls>\n<｜DSML｜invoke name=\"weather\">\n<｜DSML｜parameter name=\"city\" "
     "string=\"true\">Rome"
     "</｜DSML｜parameter>\n<｜DSML｜parameter name=\"days\" "
     "string=\"true\">1</｜DSML｜parameter>\n</｜DSML｜invoke>\n"
     "</｜DSML｜tool_calls>",
     "", R"({"city":"Rome","days":"1"})", nullptr},
    {"atem",
     "<atem:function_calls>\n<atem:invoke name=\"weather\">\n<atem:parameter name=\"city\">Rome"
     "</atem:parameter>\n</atem:invoke>\n</atem:function_calls>",
     "", kRome, nullptr},
    {"kimi-k3",
     "<|open|>think<|sep|>Hm.<|close|>think<|sep|><|open|>response<|sep|>Now.<|close|>response<|sep|>"
     "<|open|>tools<|sep|><|open|>call tool=\"weather\" index=\"1\"<|sep|><|open|>argument key=\"city\" "
     "type=\"string\"<|sep|>Rome<|close|>argument<|sep|><|close|>call<|sep|><|open|>call tool=\"add\" "
     "index=\"2\"<|sep|><|open|>argument key=\"a\" "
     "type=\"number\"<|sep|>1<|close|>argument<|sep|><|open|>argument "
     "key=\"b\" type=\"array\"<|sep|>[2, 3]<|close|>argument<|sep|><|close|>call<|sep|><|close|>tools<|sep|>"
     "<|close|>message<|sep|>",
     "<|open|>think<|sep|>Hm.<|close|>think<|sep|>Now.", kRome, kSum},
    {"minicpm5",
     "<function name=\"weather\"><param name=\"city\"><![CDATA[Rome]]></param></function>\n<function "
     "name=\"add\"><param name=\"a\">1</param><param name=\"b\">[2, 3]</param></function>",
     "", kRome, kSum},
    {"hunyuan-3",
     "<tool_calls:opensource>\n<tool_call:opensource>weather<tool_sep:opensource>\n<arg_key:opensource>city"
     "</arg_key:opensource>\n<arg_value:opensource>Rome</arg_value:opensource>\n</tool_call:opensource>\n"
     "</tool_calls:opensource>",
     "", kRome, nullptr},
    {"solar-open",
     "<|tool_calls|><|tool_call:begin|>abc1<|tool_call:name|>weather<|tool_call:args|>{\"city\": \"Rome\"}"
     "<|tool_call:end|><|tool_call:begin|>abc2<|tool_call:name|>add<|tool_call:args|>{\"a\": 1, \"b\": [2, "
     "3]}"
     "<|tool_call:end|><|calls|>",
     "", kRome, kSum},
    {"apertus",
     "<|tools_prefix|>[{\"weather\": {\"city\": \"Rome\"}}, {\"add\": {\"a\": 1, \"b\": [2, "
     "3]}}]<|tools_suffix|>",
     "", kRome, kSum},
    {"gigachat-3", "<|function_call|>{\"name\": \"weather\", \"arguments\": {\"city\": \"Rome\"}}", "", kRome,
     nullptr},
    {"gigachat-3",
     "<|message_sep|>\n\nfunction call<|role_sep|>\n{\"name\": \"weather\", \"arguments\": {\"city\": "
     "\"Rome\"}}<|message_sep|>",
     "\n\n", kRome, nullptr},
    {"lfm2.5", "<|tool_call_start|>[weather(city='Rome'), add(a=1, b=[2, 3])]<|tool_call_end|>", "", kRome,
     kSum},
    {"minimax-m1",
     "<tool_calls>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Rome\"}}\n{\"name\": \"add\", "
     "\"arguments\": {\"a\": 1, \"b\": [2, 3]}}\n</tool_calls>",
     "", kRome, kSum},
    {"functionary-3.2", ">>>all\nNow.>>>weather\n{\"city\": \"Rome\"}>>>add\n{\"a\": 1, \"b\": [2, 3]}",
     "Now.", kRome, kSum},
    {"hermes",  // a brace too few
     "<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Rome\"}\n</tool_call>\n<tool_call>\n"
     "{\"name\": \"add\", \"arguments\": {\"a\": 1, \"b\": [2, 3]}}\n</tool_call>",
     "", kRome, kSum},
    {"xlam",
     "[{\"name\": \"weather\", \"arguments\": {\"city\": \"Rome\"}}, {\"name\": \"add\", \"arguments\": "
     "{\"a\": 1, "
     "\"b\": [2, 3]}}]",
     "", kRome, kSum},
};

class ToolCallFamilies : public ::testing::TestWithParam<FamilyCase> {};

TEST_P(ToolCallFamilies, GiveTheirCallsInEveryCut) {
  const FamilyCase& wanted = GetParam();
  const JoinedAnswer answer = read_all_cuts(wanted.family, wanted.answer);
  EXPECT_EQ(answer.text, wanted.text);
  EXPECT_TRUE(answer.ends_with_calls);
  ASSERT_EQ(answer.calls.size(), wanted.second == nullptr ? 1u : 2u);
  EXPECT_EQ(answer.calls[0].name, "weather");
  EXPECT_EQ(answer.calls[0].arguments, wanted.first);
  if (wanted.second == nullptr) return;
  EXPECT_EQ(answer.calls[1].name, "add");
  EXPECT_EQ(answer.calls[1].arguments, wanted.second);
}

// Each beginning of the answer is one that the budget may end: the same comes out of every cut of it, and no
// call counts as whole before its last byte.
TEST_P(ToolCallFamilies, AreReadAlikeWhereverTheAnswerEnds) {
  const std::string_view answer = GetParam().answer;
  std::size_t num_calls = 0;
  for (std::size_t end = 0; end <= answer.size(); ++end) {
    const api::ToolCallReading reading = reading_of(GetParam().family);
    const JoinedAnswer whole = read_cut(reading, answer.substr(0, end), {});
    std::vector<std::size_t> bytes;
    for (std::size_t cut = 1; cut < end; ++cut) bytes.push_back(cut);
    expect_same(read_cut(reading, answer.substr(0, end), bytes), whole, answer.substr(0, end));
    std::size_t num_complete = 0;
    for (const api::ToolCall& call : whole.calls) {
      num_complete += call.is_complete ? 1 : 0;
      EXPECT_TRUE(!call.is_complete || call.arguments.ends_with("}")) << answer.substr(0, end);
    }
    EXPECT_GE(num_complete, num_calls) << answer.substr(0, end);
    num_calls = num_complete;
  }
}

TEST_P(ToolCallFamilies, GiveTheSameCallsWhereTheirMarksAreControlTokens) {
  const FamilyCase& wanted = GetParam();
  api::ToolCallReading reading = reading_of(wanted.family);
  const api::ToolCallSyntax& syntax = *reading.syntax;
  for (const std::string_view mark : {syntax.section_open, syntax.section_close, syntax.open[0], syntax.close}) {
    if (!mark.empty()) reading.hidden_marks.emplace_back(mark);
  }
  const JoinedAnswer answer = read_all_cuts(reading, wanted.answer);
  ASSERT_EQ(answer.calls.size(), wanted.second == nullptr ? 1u : 2u);
  EXPECT_EQ(answer.calls[0].arguments, wanted.first);
  if (wanted.second != nullptr) {
    EXPECT_EQ(answer.calls[1].arguments, wanted.second);
  }
  for (const std::string& mark : reading.hidden_marks) EXPECT_FALSE(answer.text.contains(mark)) << mark;
}

INSTANTIATE_TEST_SUITE_P(All, ToolCallFamilies, ::testing::ValuesIn(kCases), [](const auto& test) {
  std::string name = test.param.family;
  for (char& c : name) c = c == '-' || c == '.' ? '_' : c;
  return name + "_" + std::to_string(test.index);
});

TEST(ToolCallFamilies, HaveACaseEach) {
  for (const api::ToolCallSyntax& syntax : api::tool_call_syntaxes()) {
    const auto is_here = [&](const FamilyCase& tested) { return tested.family == syntax.family; };
    EXPECT_TRUE(std::ranges::any_of(kCases, is_here)) << syntax.family;
  }
}

}  // namespace
}  // namespace kvasir::server::tool_call_families_test
