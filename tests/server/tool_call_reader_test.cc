#include "server/api/tool_calls/tool_call_reader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "tool_call_reading.h"

namespace kvasir::server::tool_call_reader_test {
namespace {

using api::AnswerPart;

const std::string kWeather = R"(<tool_call>{"name": "weather", "arguments": {"city": "Rome"}}</tool_call>)";

struct TextCase {
  const char* family;
  const char* answer;
};

TEST(ToolCallReader, LeavesWhatOnlyLooksLikeACallAsItIs) {
  for (const TextCase& text : std::vector<TextCase>{
           {"hermes", "a < b"},
           {"hermes", "<tool"},
           {"hermes", "<tool_call"},
           {"hermes", "Use the <tool_call> mark, then JSON."},
           {"hermes", "<tool_call>{\"name\": \"weather\""},
           {"hermes", "<tool_call>{\"name\": \"weather\", \"arguments\": "},
           {"hermes", "<tool_call>nonsense</tool_call>"},
           {"hermes", "<tool_call>{\"name\": \"unknown\", \"arguments\": {}}</tool_call> after"},
           {"hermes", "<tool_call>{\"arguments\": {\"a\": 1}}</tool_call>"},
           {"hermes", "<tool_call>{\"name\": \"weather\", \"arguments\": [1]}</tool_call>"},
           {"hermes", "<tool_call>{'name': 'weather'}</tool_call>"},
           {"hermes", "<tool_call></tool_call>"},
           {"hermes", "<tool_call>\n<function=weather>\n</function>\n</tool_call>"},
           {"hermes", "{\"name\": \"weather\", \"arguments\": {}}"},
           {"hermes", "<tools>weather</tools> <tool_calls>"},
           {"qwen3-coder", "<tool_call>\n<function=unknown>\n<parameter=a>\n1\n</parameter>\n</function>"},
           {"qwen3-coder", "<tool_call>\n<function=weather>"},
           {"qwen3-coder", "<tool_call>\n<function=weather>\nRome\n</function>\n</tool_call>"},
           {"qwen3-coder", "A <function=name> tag and a <parameter=key> tag."},
           {"qwen3-coder", "<tool_call>{\"name\": \"weather\", \"arguments\": {}}</tool_call>"},
           {"glm-4.5", "<tool_call>\nunknown\n</tool_call>"},
           {"glm-4.5", "<tool_call>{\"name\": \"weather\"}</tool_call>"},
           {"mistral", "[1, 2]"},
           {"mistral", "[TOOL"},
           {"mistral", "[{\"name\": \"nobody\"}]"},
           {"mistral", "[]"},
           {"mistral", "Hello [TOOL_CALLS]"},
           {"mistral", "Text first [{\"name\": \"weather\", \"arguments\": {}}]"},
           {"mistral-args", "[TOOL_CALLS]unknown[ARGS]{\"a\": 1}"},
           {"mistral-args", "[TOOL_CALLS]weather[ARGS]"},
           {"llama-3", "{\"name\": \"weather\"} and more"},
           {"llama-3", "{\"answer\": 42}"},
           {"llama-3", "{"},
           {"llama-3", " "},
           {"llama-3", "{\"name\": \"weather\""},
           {"llama-3", "Hello {\"name\": \"weather\", \"parameters\": {}}"},
           {"gemma4", "<|tool_call>call:unknown{a:1}<tool_call|>"},
           {"functiongemma", "<start_function_call>weather{a:1}<end_function_call>"},
           {"gpt-oss", "Send it to=functions.weather, they say."},
           {"deepseek-v3", "<｜tool▁calls▁begin｜>nothing<｜tool▁calls▁end｜>"},
           {"kimi-k2", "<|tool_call_begin|>functions.unknown:0<|tool_call_argument_begin|>{}"},
           {"command-r",
            "Action: ```json\n[\n    {\"tool_name\": \"directly-answer\", \"parameters\": {}}\n]```"},
           {"command-r", "Plan: none\nAction: think"},
           {"llama-4-pythonic", "[1, 2, 3]"},
           {"llama-4-pythonic", "[weather(city=Rome)]"},
           {"llama-4-pythonic", "[see(weather)]"},
           {"functionary-3.1", "<function=unknown>{\"a\": 1}</function>"},
           {"firefunction", "import functools; functools.reduce(add, [1])"},
           {"lfm2", "<|tool_call_start|>[unknown(a=1)]<|tool_call_end|>"}}) {
    const JoinedAnswer answer = read_all_cuts(text.family, text.answer);
    EXPECT_EQ(api::read_answer(reading_of(text.family), text.answer).text, text.answer);
    EXPECT_TRUE(api::read_answer(reading_of(text.family), text.answer).calls.empty()) << text.answer;
    EXPECT_EQ(answer.text, text.answer);
    EXPECT_FALSE(answer.ends_with_calls) << text.answer;
  }
}

TEST(ToolCallReader, CountsHowCallsEnd) {
  const auto reading = reading_of("hermes");
  observe::ToolCallCounts counts;
  const auto read = [&](std::string_view answer) {
    api::ToolCallReader reader(reading, &counts);
    api::ToolCallReader::Parts parts;
    for (const char byte : answer) reader.push({&byte, 1}, parts);
    reader.finish(parts);
  };
  const auto expect_counts = [&](std::int64_t complete, std::int64_t cut, std::int64_t broken) {
    EXPECT_EQ(counts.by_end[0], complete);
    EXPECT_EQ(counts.by_end[1], cut);
    EXPECT_EQ(counts.by_end[2], broken);
  };
  read("No call.");
  expect_counts(0, 0, 0);
  read(kWeather + kWeather);
  expect_counts(2, 0, 0);
  read(kWeather.substr(0, kWeather.find("Rome")));
  expect_counts(2, 1, 0);
  read(R"(<tool_call>{"name": "weather", "arguments": {"city": nonsense}}</tool_call>)");
  expect_counts(2, 1, 1);
}

TEST(ToolCallReader, KeepsMarksInsideArguments) {
  struct Nested {
    const char* family;
    const char* answer;
    const char* arguments;
  };
  for (
      const Nested& nested : std::vector<Nested>{
          {"hermes",
           "<tool_call>{\"name\": \"weather\", \"arguments\": {\"city\": \"a </tool_call> <tool_call> } ]\"}}"
           "</tool_call>",
           R"({"city":"a </tool_call> <tool_call> } ]"})"},
          {"hermes",
           "<tool_call>{\"name\": \"weather\", \"arguments\": {\"city\": \"<think> \\\"x\\\"\"}}</tool_call>",
           R"({"city":"<think> \"x\""})"},
          {"qwen3-coder",
           "<tool_call>\n<function=weather>\n<parameter=city>\na </parameter> b </function> </tool_call> c\n"
           "<parameter=x>\n</parameter>\n</function>\n</tool_call>",
           R"({"city":"a </parameter> b </function> </tool_call> c\n<parameter=x>"})"},
          {"glm-4.5",
           "<tool_call>weather\n<arg_key>city</arg_key>\n<arg_value>a </arg_value> b "
           "</tool_call></arg_value>\n"
           "</tool_call>",
           R"({"city":"a </arg_value> b </tool_call>"})"},
          {"mistral-args", "[TOOL_CALLS]weather[ARGS]{\"city\": \"[TOOL_CALLS]add[ARGS]{}\"}",
           R"({"city":"[TOOL_CALLS]add[ARGS]{}"})"},
          {"functiongemma",
           "<start_function_call>call:weather{city:<escape>a},<end_function_call> "
           "\"<escape>}<end_function_call>",
           R"({"city":"a},<end_function_call> \""})"},
          {"gemma4", "<|tool_call>call:weather{city:<|\"|>a <tool_call|> <|b<|\"|>,days:2}<tool_call|>",
           R"({"city":"a <tool_call|> <|b","days":2})"},
          {"gpt-oss",
           "<|channel|>commentary to=functions.weather <|constrain|>json<|message|>{\"city\": \"<|call|> <|end|>"
           "<|start|>assistant<|channel|>commentary to=functions.add<|message|>{}\"}<|call|>",
           R"({"city":"<|call|> <|end|><|start|>assistant<|channel|>commentary to=functions.add<|message|>{}"})"},
          {"deepseek-v3.1",
           "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>weather<｜tool▁sep｜>{\"city\": \"<｜tool▁call▁end｜><｜tool▁sep｜>\"}"
           "<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
           R"({"city":"<｜tool▁call▁end｜><｜tool▁sep｜>"})"},
          {"granite-3", R"(<|tool_call|>[{"name": "weather", "arguments": {"city": "<|tool_call|>[{]"}}])",
           R"({"city":"<|tool_call|>[{]"})"},
          {"phi-4-mini",
           R"(<|tool_call|>[{"name": "weather", "arguments": {"city": "]<|/tool_call|>"}}]<|/tool_call|>)",
           R"({"city":"]<|/tool_call|>"})"},
          {"mistral", R"([TOOL_CALLS][{"name": "weather", "arguments": {"city": "[TOOL_CALLS][{}]"}, "id": "abcdefghi"}])",
           R"({"city":"[TOOL_CALLS][{}]"})"},
          {"kimi-k2",
           "<|tool_calls_section_begin|><|tool_call_begin|>functions.weather:0<|tool_call_argument_begin|>{\"city\": "
           "\"<|tool_call_end|>\"}<|tool_call_end|><|tool_calls_section_end|>",
           R"({"city":"<|tool_call_end|>"})"},
          {"lfm2", "<|tool_call_start|>[weather(city='it\\'s )] <|tool_call_end|>')]<|tool_call_end|>",
           R"({"city":"it's )] <|tool_call_end|>"})"},
          {"deepseek-v3",
           "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>weather\n```json\n{\"city\": "
           "\"```\\n"
           "<｜tool▁call▁end｜>\"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
           R"({"city":"```\n<｜tool▁call▁end｜>"})"}}) {
    const JoinedAnswer answer = read_all_cuts(nested.family, nested.answer);
    ASSERT_EQ(answer.calls.size(), 1u) << nested.answer;
    EXPECT_EQ(answer.calls[0].arguments, nested.arguments);
    EXPECT_EQ(answer.text, "") << nested.answer;
    EXPECT_TRUE(answer.ends_with_calls);
  }
}

TEST(ToolCallReader, FindsNoCallInReasoning) {
  const std::string thought = "<think>I might. " + kWeather + " But no.</think>";
  for (const std::string& answer : {thought + "\n\nDone.", thought, "Text. " + thought + " more",
                                    "<think>" + kWeather,  // unclosed
                                    "[THINK]" + kWeather + "[/THINK]", "<think>\n" + kWeather + "</thi"}) {
    const JoinedAnswer read = read_all_cuts("hermes", answer);
    EXPECT_EQ(read.text, answer);
    EXPECT_TRUE(read.calls.empty()) << answer;
  }
  const JoinedAnswer behind = read_all_cuts("hermes", thought + "\n" + kWeather);
  EXPECT_EQ(behind.text, thought + "\n");
  EXPECT_EQ(behind.calls.size(), 1u);
  const std::string_view bare = R"(<think>{"name": "weather"}</think>

{"name": "weather", "parameters": {}})";
  const JoinedAnswer llama = read_all_cuts("llama-3", bare);
  EXPECT_EQ(llama.text, R"(<think>{"name": "weather"}</think>)");
  ASSERT_EQ(llama.calls.size(), 1u);
}

TEST(ToolCallReader, FindsNoCallInReasoningThatThePromptBegan) {
  api::ToolCallReading reading = reading_of("hermes");
  reading.starts_in_reasoning = true;
  EXPECT_TRUE(read_all_cuts(reading, kWeather).calls.empty());
  const JoinedAnswer answer = read_all_cuts(reading, "Hm. " + kWeather + "</think>" + kWeather);
  EXPECT_EQ(answer.text, "Hm. " + kWeather + "</think>");
  EXPECT_EQ(answer.calls.size(), 1u);
}

TEST(ToolCallReader, HidesMarksThatAreControlTokens) {
  api::ToolCallReading reading = reading_of("hermes");
  reading.hidden_marks = {"<tool_call>", "</tool_call>", "<think>", "</think>"};
  const JoinedAnswer call = read_all_cuts(reading, "<think>x</think>So: " + kWeather + "</tool_call>!");
  EXPECT_EQ(call.text, "xSo: !");
  EXPECT_EQ(call.calls.size(), 1u);
  const JoinedAnswer text = read_all_cuts(reading, "<tool_call>nonsense</tool_call>, <tool_");
  EXPECT_EQ(text.text, "nonsense, <tool_");
  const JoinedAnswer thought = read_all_cuts(reading, "<think>" + kWeather);
  EXPECT_EQ(thought.text, R"({"name": "weather", "arguments": {"city": "Rome"}})");
}

TEST(ToolCallReader, LooksForNoCallsWithoutTools) {
  api::ToolCallReading reading = reading_of("hermes");
  reading.tools.clear();
  reading.hidden_marks = {"<tool_call>", "</tool_call>"};
  EXPECT_EQ(read_all_cuts(reading, "So: " + kWeather).text,
            R"(So: {"name": "weather", "arguments": {"city": "Rome"}})");
  reading = reading_of("llama-3");
  reading.tools.clear();
  EXPECT_EQ(read_all_cuts(reading, R"({"name": "weather"})").text, R"({"name": "weather"})");
}

TEST(ToolCallReader, HidesTheFrameOfHarmony) {
  api::ToolCallReading reading = reading_of("gpt-oss");
  reading.hidden_marks = {"<|start|>", "<|channel|>", "<|message|>", "<|end|>", "<|constrain|>"};
  const JoinedAnswer answer = read_all_cuts(
      reading,
      "<|channel|>analysis<|message|>A to=functions.add thought.<|end|><|start|>assistant"
      "<|channel|>final<|message|>The answer.");
  EXPECT_EQ(answer.text, "A to=functions.add thought.The answer.");
  EXPECT_TRUE(answer.calls.empty());
}

TEST(ToolCallReader, GivesArgumentsTheirTypes) {
  const JoinedAnswer xml = read_all_cuts(
      "qwen3-coder",
      "<tool_call>\n<function=weather>\n<parameter=city>\n12\n</parameter>\n<parameter=days>\n3\n</"
      "parameter>\n"
      "<parameter=where>\n{\"lat\": 1.5}\n</parameter>\n<parameter=free>\nyes \"and\" no\n</parameter>\n"
      "<parameter=flag>\nTrue\n</parameter>\n</function>\n</tool_call>");
  ASSERT_EQ(xml.calls.size(), 1u);
  EXPECT_EQ(xml.calls[0].arguments,
            R"({"city":"12","days":3,"where":{"lat":1.5},"free":"yes \"and\" no","flag":true})");
  const JoinedAnswer lines = read_all_cuts(
      "qwen3-coder",
      "<tool_call>\n<function=weather>\n<parameter=city>\n\n a\n\tb\n\n</parameter>"
      "\n<parameter=days>\nmany\n</parameter>\n</function>\n</tool_call>");
  ASSERT_EQ(lines.calls.size(), 1u);
  EXPECT_EQ(lines.calls[0].arguments, R"({"city":"\n a\n\tb\n","days":"many"})");
  const JoinedAnswer python = read_all_cuts(
      "lfm2", "<|tool_call_start|>[add(a=None, b=True, c={'k': [1.5, 'x\\ty']}, d=-2e3,)]<|tool_call_end|>");
  ASSERT_EQ(python.calls.size(), 1u);
  EXPECT_EQ(python.calls[0].arguments, R"({"a":null,"b":true,"c":{"k":[1.5,"x\ty"]},"d":-2e3})");
  const JoinedAnswer gemma = read_all_cuts(
      "gemma4", "<|tool_call>call:add{a:{k:<|\"|>v<|\"|>,l:[<|\"|>x<|\"|>,null]},b:true,c:{}}<tool_call|>");
  ASSERT_EQ(gemma.calls.size(), 1u);
  EXPECT_EQ(gemma.calls[0].arguments, R"({"a":{"k":"v","l":["x",null]},"b":true,"c":{}})");
}

TEST(ToolCallReader, TakesCallsWithoutArguments) {
  for (const TextCase& call : std::vector<TextCase>{
           {"hermes", "<tool_call>{\"name\": \"weather\"}</tool_call>"},
           {"hermes", "<tool_call>{\"name\": \"weather\", \"arguments\": {}}"},  // the end is the mark
           {"hermes", "<tool_call>{\"name\": \"weather\", \"arguments\": null}}</tool_call>"},
           {"hermes", "<tool_call>{\"name\": \"weather\", \"arguments\": \"\"}</tool_call>"},
           {"qwen3-coder", "<tool_call>\n<function=weather>\n</function>\n</tool_call>"},
           {"glm-4.5", "<tool_call>weather\n</tool_call>"},
           {"glm-4.5", "<tool_call>weather</tool_call>"},
           {"llama-3", "{\"name\": \"weather\"}"},
           {"llama-3", "{\"name\": \"weather\", \"parameters\": {}}"},
           {"functiongemma", "<start_function_call>call:weather{}<end_function_call>"},
           {"llama-4-pythonic", "[weather()]"}}) {
    const JoinedAnswer answer = read_all_cuts(call.family, call.answer);
    ASSERT_EQ(answer.calls.size(), 1u) << call.answer;
    EXPECT_EQ(answer.calls[0].arguments, "{}") << call.answer;
    EXPECT_EQ(answer.text, "");
    EXPECT_TRUE(answer.ends_with_calls);
  }
}

TEST(ToolCallReader, ReadsArgumentsThatAreAString) {
  const JoinedAnswer answer = read_all_cuts(
      "hermes", R"(<tool_call>{"name": "add", "arguments": "{\"a\": \"\u00e9\\n\"}"}</tool_call>)");
  ASSERT_EQ(answer.calls.size(), 1u);
  EXPECT_EQ(answer.calls[0].arguments, "{\"a\": \"\u00e9\\n\"}");
}

TEST(ToolCallReader, NeverSplitsAnEscape) {
  const api::ToolCallReading reading = reading_of("hermes");
  const std::string answer =
      R"(<tool_call>{"name": "add", "arguments": {"a": "x\n\u00e9\ud83d\ude00\\", "b": -1.5e3}}</tool_call>)";
  api::ToolCallReader reader(reading);
  std::vector<std::string> pieces;
  std::string joined;
  for (const char byte : answer) {
    api::ToolCallReader::Parts parts;
    reader.push(std::string_view(&byte, 1), parts);
    for (const AnswerPart& part : parts) {
      if (part.kind != AnswerPart::Kind::kArguments) continue;
      pieces.push_back(part.text);
      joined += part.text;
    }
  }
  EXPECT_EQ(joined, R"({"a":"x\n\u00e9\ud83d\ude00\\","b":-1.5e3})");
  for (const char* whole : {R"(\n)", R"(\u00e9)", R"(\ud83d\ude00)", R"(\\)"}) {
    EXPECT_NE(std::ranges::find(pieces, whole), pieces.end()) << whole;
  }
}

TEST(ToolCallReader, TellsTheNameBeforeTheArgumentsEnd) {
  const api::ToolCallReading reading = reading_of("hermes");
  api::ToolCallReader reader(reading);
  api::ToolCallReader::Parts parts;
  reader.push(R"(<tool_call>{"name": "weather", "arguments": )", parts);
  EXPECT_TRUE(parts.empty());
  reader.push(R"({"city": "Ro)", parts);
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0].text, "weather");
  EXPECT_EQ(parts[1].text, R"({"city":"Ro)");
}

TEST(ToolCallReader, MarksACallThatTheEndCutOff) {
  for (const TextCase& cut : std::vector<TextCase>{
           {"hermes", "<tool_call>{\"name\": \"weather\", \"arguments\": {\"city\": \"Ro"},
           {"hermes", "<tool_call>{\"name\": \"weather\", \"arguments\": {\"city\": \"Rome\"}"},
           {"qwen3-coder", "<tool_call>\n<function=weather>\n<parameter=city>\nRo"},
           {"lfm2", "<|tool_call_start|>[weather(city=\"Ro"}}) {
    const JoinedAnswer answer = read_all_cuts(cut.family, cut.answer);
    ASSERT_EQ(answer.calls.size(), 1u) << cut.answer;
    EXPECT_FALSE(answer.calls[0].is_complete);
    EXPECT_TRUE(answer.calls[0].arguments.starts_with(R"({"city":"Ro)")) << cut.answer;
    EXPECT_EQ(answer.text, "");
    EXPECT_FALSE(answer.ends_with_calls) << cut.answer;
    EXPECT_EQ(api::read_answer(reading_of(cut.family), cut.answer).calls.size(), 1u);
  }
}

TEST(ToolCallReader, GivesABrokenCallAsText) {
  for (const std::string& answer :
       {std::string(R"(<tool_call>{"name": "weather", "arguments": {"city": nope}}</tool_call> So.)"),
        std::string(R"(<tool_call>{"name": "weather", "arguments": {"city": "Rome"]}</tool_call>)"),
        std::string(R"(<tool_call>{"name": "weather", "arguments": "{\"a\": 1"}</tool_call>)")}) {
    const api::ReadAnswer at_once = api::read_answer(reading_of("hermes"), answer);
    EXPECT_EQ(at_once.text, answer);
    EXPECT_TRUE(at_once.calls.empty());
    const JoinedAnswer stream = read_all_cuts("hermes", answer);
    EXPECT_EQ(stream.text, answer);
    EXPECT_FALSE(stream.ends_with_calls);
  }
  const std::string two = R"(<tool_call>{"name": "weather", "arguments": {"city": nope}}</tool_call>)" +
                          kWeather;
  EXPECT_EQ(api::read_answer(reading_of("hermes"), two).calls.size(), 1u);
}

// Found by fuzzing: the key became a member without a value.
TEST(ToolCallReader, GivesACallWithAKeyAloneAsText) {
  const std::string answer = "<start_function_call>call:weather{city:Rome,'days}<end_function_call>";
  EXPECT_TRUE(api::read_answer(reading_of("functiongemma"), answer).calls.empty());
  EXPECT_EQ(read_all_cuts("functiongemma", answer).text, answer);
}

TEST(ToolCallReader, GoesOnWithTheMarkThatThePromptEndsWith) {
  api::ToolCallReading reading = reading_of("functionary-3.2");
  reading.prompt_mark = ">>>";
  const JoinedAnswer call = read_all_cuts(reading, "weather\n{\"city\": \"Rome\"}");
  ASSERT_EQ(call.calls.size(), 1u);
  EXPECT_EQ(call.calls[0].arguments, R"({"city":"Rome"})");
  EXPECT_TRUE(call.ends_with_calls);
  EXPECT_EQ(read_all_cuts(reading, "all\nHello.").text, "Hello.");
  EXPECT_EQ(read_all_cuts(reading, "Hello there.\n>>> 1 + 1").text, "Hello there.\n>>> 1 + 1");
}

TEST(ToolCallReader, EscapesControlCharactersInStrings) {
  const JoinedAnswer answer = read_all_cuts(
      "hermes", "<tool_call>{\"name\": \"weather\", \"arguments\": {\"city\": \"a\nb\tc\"}}</tool_call>");
  ASSERT_EQ(answer.calls.size(), 1u);
  EXPECT_EQ(answer.calls[0].arguments, R"({"city":"a\nb\tc"})");
}

TEST(ToolCallReader, LeavesOutCallsBeyondTheirNumber) {
  api::ToolCallReading reading = reading_of("hermes");
  reading.max_calls = 1;
  const JoinedAnswer tagged = read_all_cuts(reading, "So: " + kWeather + kWeather + " and");
  EXPECT_EQ(tagged.calls.size(), 1u);
  EXPECT_EQ(tagged.text, "So: and");
  EXPECT_TRUE(tagged.ends_with_calls);
  reading.syntax = &api::tool_call_syntax("llama-3");
  EXPECT_EQ(read_all_cuts(reading, "{\"name\": \"add\"}; {\"name\": \"add\"}").calls.size(), 1u);
  reading.syntax = &api::tool_call_syntax("mistral");
  const JoinedAnswer list = read_all_cuts(
      reading, R"([TOOL_CALLS][{"name": "add", "arguments": {}}, {"name": "add", "arguments": {"a": 1}}])");
  EXPECT_EQ(list.calls.size(), 1u);
  EXPECT_EQ(list.text, "");
}

TEST(ToolCallReader, LetsPlainTextThroughAtOnce) {
  const api::ToolCallReading reading = reading_of("llama-3");
  api::ToolCallReader reader(reading);
  api::ToolCallReader::Parts parts;
  reader.push("Hello", parts);
  reader.push(" {", parts);
  ASSERT_EQ(parts.size(), 1u);
  EXPECT_EQ(parts[0].text, "Hello {");
}

TEST(ToolCallReader, EndsOnAnyInput) {
  std::string deep = "<tool_call>{\"name\": \"add\", \"arguments\": {\"a\": ";
  for (int i = 0; i < 20000; ++i) deep += '[';
  EXPECT_TRUE(api::read_answer(reading_of("hermes"), deep).calls.empty());
  std::string unsure;
  for (int i = 0; i < 5000; ++i) unsure += "<tool_call>{\"x\": \"";
  EXPECT_EQ(api::read_answer(reading_of("hermes"), unsure).text, unsure);
  std::string marks;
  for (int i = 0; i < 2000; ++i) marks += "<tool_call>";
  EXPECT_EQ(api::read_answer(reading_of("hermes"), marks).text, marks);
  std::mt19937 random(3);
  const std::vector<std::string> bits = {
      "<tool_call>",   "</tool_call>", "{",           "}",  "\"name\"",   ": ",           "\"weather\"",
      "\"arguments\"", ", ",           "[",           "]",  "<function=", "weather",      ">",
      "<parameter=",   "</parameter>", "</function>", "\n", "x",          "\\",           "\"",
      "<think>",       "</think>",     "(",           ")",  "=",          "[TOOL_CALLS]", "[ARGS]"};
  for (const api::ToolCallSyntax& syntax : api::tool_call_syntaxes()) {
    std::vector<std::string> own = bits;
    for (const std::string_view mark : {syntax.open[0], syntax.section_open, syntax.close, syntax.quote})
      own.emplace_back(mark);
    for (int round = 0; round < 200; ++round) {
      std::string answer;
      for (int i = 0; i < 12; ++i) answer += own[random() % own.size()];
      const JoinedAnswer whole = read_cut(reading_of(syntax.family), answer, {});
      std::vector<std::size_t> bytes;
      for (std::size_t cut = 1; cut < answer.size(); ++cut) bytes.push_back(cut);
      expect_same(read_cut(reading_of(syntax.family), answer, bytes), whole, answer);
    }
  }
}

// A text whose first line is no tool's name stays text.
TEST(ToolCallReader, ANameWithoutAMarkMustBeATools) {
  EXPECT_TRUE(read_all_cuts("glm-4", "weathers\n{\"city\": \"Rome\"}").calls.empty());
  EXPECT_EQ(read_all_cuts("glm-4", "weather").text, "weather");
  EXPECT_EQ(read_all_cuts("glm-4", "weather\nis fine").text, "weather\nis fine");
}

}  // namespace
}  // namespace kvasir::server::tool_call_reader_test
