// Answers read in every way of cutting them.
#pragma once

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "server/api/tool_calls/tool_call_reader.h"

namespace kvasir::server {

// Everything a stream says, joined.
struct JoinedAnswer {
  std::string text;
  std::string reasoning;
  std::vector<api::ToolCall> calls;  // broken ones too
  bool ends_with_calls = false;
};

// Two tools: weather(city: string, days: integer, where: object) and add(a, b).
inline api::ToolCallReading reading_of(std::string_view family) {
  using namespace api;
  return {.syntax = &tool_call_syntax(family),
          .tools = {{.name = "weather",
                     .arguments = {{"city", kStringType}, {"days", kNumberType}, {"where", kObjectType}}},
                    {.name = "add", .arguments = {}}},
          .hidden_marks = {}};
}

// Cut at each of the ascending positions.
inline JoinedAnswer read_cut(const api::ToolCallReading& reading, std::string_view answer,
                             const std::vector<std::size_t>& cuts) {
  using Kind = api::AnswerPart::Kind;
  api::ToolCallReader reader(reading);
  JoinedAnswer joined;
  api::ToolCallReader::Parts parts;
  std::size_t begin = 0;
  for (const std::size_t cut : cuts) {
    reader.push(answer.substr(begin, cut - begin), parts);
    begin = cut;
  }
  reader.push(answer.substr(begin), parts);
  reader.finish(parts);
  for (const api::AnswerPart& part : parts) {
    if (part.kind == Kind::kText) joined.text += part.text;
    if (part.kind == Kind::kReasoning) joined.reasoning += part.text;
    if (part.kind == Kind::kCall) joined.calls.push_back({part.text, "", false});
    if (part.kind == Kind::kArguments) joined.calls.back().arguments += part.text;
    if (part.kind == Kind::kCallEnd) joined.calls.back().is_complete = part.end == api::CallEnd::kComplete;
  }
  joined.ends_with_calls = reader.ends_with_calls();
  return joined;
}

inline void expect_same(const JoinedAnswer& a, const JoinedAnswer& b, std::string_view what) {
  EXPECT_EQ(a.text, b.text) << what;
  EXPECT_EQ(a.reasoning, b.reasoning) << what;
  EXPECT_EQ(a.ends_with_calls, b.ends_with_calls) << what;
  ASSERT_EQ(a.calls.size(), b.calls.size()) << what;
  for (std::size_t i = 0; i < a.calls.size(); ++i) {
    EXPECT_EQ(a.calls[i].name, b.calls[i].name) << what;
    EXPECT_EQ(a.calls[i].arguments, b.calls[i].arguments) << what;
    EXPECT_EQ(a.calls[i].is_complete, b.calls[i].is_complete) << what;
  }
}

// The answer in one piece, after the same came out of every cut in two, of single bytes and of random pieces.
inline JoinedAnswer read_all_cuts(const api::ToolCallReading& reading, std::string_view answer) {
  const JoinedAnswer whole = read_cut(reading, answer, {});
  std::vector<std::size_t> bytes;
  for (std::size_t cut = 1; cut < answer.size(); ++cut) {
    expect_same(read_cut(reading, answer, {cut}), whole, answer);
    bytes.push_back(cut);
  }
  expect_same(read_cut(reading, answer, bytes), whole, answer);
  std::mt19937 random(7);
  for (int round = 0; round < 50; ++round) {
    std::vector<std::size_t> cuts;
    for (const std::size_t cut : bytes) {
      if (random() % 5 == 0) cuts.push_back(cut);
    }
    expect_same(read_cut(reading, answer, cuts), whole, answer);
  }
  const api::ReadAnswer at_once = api::read_answer(reading, answer);
  EXPECT_EQ(at_once.text, whole.text) << answer;
  EXPECT_EQ(at_once.reasoning, whole.reasoning) << answer;
  EXPECT_EQ(at_once.ends_with_calls, whole.ends_with_calls) << answer;
  std::size_t num_told = 0;
  for (const api::ToolCall& call : whole.calls) {
    if (num_told < at_once.calls.size() && at_once.calls[num_told].arguments == call.arguments) ++num_told;
  }
  EXPECT_EQ(num_told, at_once.calls.size()) << answer;
  return whole;
}

inline JoinedAnswer read_all_cuts(std::string_view family, std::string_view answer) {
  return read_all_cuts(reading_of(family), answer);
}

}  // namespace kvasir::server
