#include "server/api/tool_calls.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace kvasir::server::tool_calls_test {
namespace {

const std::vector<std::string> kTools = {"weather", "add"};

struct Reading {
  std::string text;
  std::vector<api::ToolCall> calls;
};

// In pieces of `length` bytes.
Reading read(api::ToolCallFormat format, std::string_view answer, std::size_t length) {
  api::ToolCallReader reader(format, kTools);
  Reading reading;
  const auto take = [&](api::ToolCallReader::Piece piece) {
    reading.text += piece.text;
    for (api::ToolCall& call : piece.calls) reading.calls.push_back(std::move(call));
  };
  for (std::size_t i = 0; i < answer.size(); i += length) take(reader.push(answer.substr(i, length)));
  take(reader.finish());
  EXPECT_EQ(reader.num_calls(), std::ssize(reading.calls));
  return reading;
}

// However the answer is cut into pieces, the same comes out of it.
Reading read(api::ToolCallFormat format, std::string_view answer) {
  const Reading whole = read(format, answer, answer.size());
  for (const std::size_t length : {1, 2, 3, 7, 20}) {
    const Reading pieces = read(format, answer, length);
    EXPECT_EQ(pieces.text, whole.text) << length;
    EXPECT_EQ(pieces.calls.size(), whole.calls.size()) << length;
  }
  return whole;
}

TEST(ToolCalls, AreFoundBetweenText) {
  const Reading reading =
      read(api::ToolCallFormat::kTagged,
           "So: <tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Rome\"}}\n</tool_call>\n"
           "<tool_call>{\"name\": \"add\", \"arguments\": \"{\\\"a\\\": 1}\"}</tool_call>");
  EXPECT_EQ(reading.text, "So: ");
  ASSERT_EQ(reading.calls.size(), 2u);
  EXPECT_EQ(reading.calls[0].name, "weather");
  EXPECT_EQ(reading.calls[0].arguments, R"({"city":"Rome"})");
  EXPECT_EQ(reading.calls[1].arguments, R"({"a": 1})");
}

TEST(ToolCalls, WhatOnlyLooksLikeOneIsText) {
  for (const char* answer : {"a < b", "<tool", "<tool_call", "<tool_call>{\"name\": \"weather\"",
                             "<tool_call>nonsense</tool_call>",
                             "<tool_call>{\"name\": \"unknown\", \"arguments\": {}}</tool_call> after",
                             "<tool_call></tool_call>"}) {
    const Reading reading = read(api::ToolCallFormat::kTagged, answer);
    EXPECT_EQ(reading.text, answer);
    EXPECT_TRUE(reading.calls.empty());
  }
}

TEST(ToolCalls, WithoutTheirClosingMarkAtTheEndAreCalls) {
  const Reading reading =
      read(api::ToolCallFormat::kTagged, "<tool_call>{\"name\": \"weather\", \"arguments\": {}}");
  ASSERT_EQ(reading.calls.size(), 1u);
  EXPECT_EQ(reading.text, "");
}

TEST(ToolCalls, AreWholeAnswersOfLlama3) {
  const Reading one =
      read(api::ToolCallFormat::kObject, "{\"name\": \"weather\", \"parameters\": {\"city\": \"}\"}}");
  ASSERT_EQ(one.calls.size(), 1u);
  EXPECT_EQ(one.calls[0].arguments, R"({"city":"}"})");
  const Reading two =
      read(api::ToolCallFormat::kObject,
           "<|python_tag|>{\"name\": \"add\", \"parameters\": {}}; {\"name\": \"add\", \"parameters\": {}}");
  EXPECT_EQ(two.calls.size(), 2u);
  EXPECT_EQ(two.text, "");
}

TEST(ToolCalls, AreWholeAnswersOfMistral) {
  constexpr std::string_view kCalls =
      R"([{"name": "add", "arguments": {"a": [1, 2]}}, {"name": "weather", "arguments": {}}])";
  for (const std::string_view mark : {"", " ", "[TOOL_CALLS]", "[TOOL_CALLS] "}) {
    const Reading reading = read(api::ToolCallFormat::kArray, std::string(mark).append(kCalls));
    ASSERT_EQ(reading.calls.size(), 2u) << mark;
    EXPECT_EQ(reading.calls[0].arguments, R"({"a":[1,2]})");
    EXPECT_EQ(reading.text, "");
  }
  for (const char* answer : {"[1, 2]", "[TOOL", "[{\"name\": \"nobody\"}]", "[]", "Hello [TOOL_CALLS]"}) {
    const Reading reading = read(api::ToolCallFormat::kArray, answer);
    EXPECT_EQ(reading.text, answer);
    EXPECT_TRUE(reading.calls.empty());
  }
}

TEST(ToolCalls, BeyondTheirNumberAreLeftOut) {
  api::ToolCallReader tagged(api::ToolCallFormat::kTagged, kTools, 1);
  const std::string call = "<tool_call>{\"name\": \"add\", \"arguments\": {}}</tool_call>";
  const auto piece = tagged.push("So: " + call + call + " and");
  EXPECT_EQ(piece.calls.size(), 1u);
  EXPECT_EQ(piece.text, "So: and");
  api::ToolCallReader objects(api::ToolCallFormat::kObject, kTools, 1);
  EXPECT_EQ(objects.push("{\"name\": \"add\"}; {\"name\": \"add\"}").text, "");
  EXPECT_EQ(objects.finish().calls.size(), 1u);
}

TEST(ToolCalls, AnAnswerThatIsNoneIsTextFromItsFirstPiece) {
  api::ToolCallReader reader(api::ToolCallFormat::kObject, kTools);
  EXPECT_EQ(reader.push("Hello").text, "Hello");
  EXPECT_EQ(reader.push(" {").text, " {");
  for (const char* answer :
       {"{\"name\": \"weather\"} and more", "{\"answer\": 42}", "{", " ", "{\"name\": \"weather\""}) {
    const Reading reading = read(api::ToolCallFormat::kObject, answer);
    EXPECT_EQ(reading.text, answer);
    EXPECT_TRUE(reading.calls.empty());
  }
}

TEST(ToolCalls, TheTemplateTellsTheirForm) {
  EXPECT_EQ(api::tool_call_format_of("{{ messages }}"), api::ToolCallFormat::kNone);
  EXPECT_EQ(api::tool_call_format_of("{% if tools %}<tool_call>{% endif %}"), api::ToolCallFormat::kTagged);
  EXPECT_EQ(api::tool_call_format_of("{% if tools %}{\"name\": f, \"parameters\": d}{% endif %}"),
            api::ToolCallFormat::kObject);
  EXPECT_EQ(api::tool_call_format_of("{% if tools %}[TOOL_CALLS] {% endif %}"), api::ToolCallFormat::kArray);
  EXPECT_EQ(api::tool_call_format_of("{% if tools %}[TOOLS]{% endif %}"), api::ToolCallFormat::kNone);
}

}  // namespace
}  // namespace kvasir::server::tool_calls_test
