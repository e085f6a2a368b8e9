// Answers that a family's grammar allows are read back as calls: grammar and reader come from the same row.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "grammar/compile/compiled_grammar.h"
#include "grammar/match/matcher.h"
#include "grammar/schema/json_schema.h"
#include "grammar/testing/tool_answers.h"
#include "jinja/value.h"
#include "server/api/tool_calls/tool_signature.h"
#include "tool_call_reading.h"

namespace kvasir::server::tool_grammar_families_test {
namespace {

constexpr int kNumAnswers = 12;  // of each kind

struct TestTool {
  const char* name;
  const char* schema;
};
constexpr TestTool kTools[] = {
    {"weather", R"({"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer","minimum":1,"maximum":14},)"
                R"("unit":{"enum":["C","F"]},"exact":{"type":"boolean"},"note":{"type":["string","null"]},)"
                R"("where":{"type":"object","properties":{"street":{"type":"string","pattern":"^[A-Z]"},)"
                R"("tags":{"type":"array","items":{"type":"string","maxLength":4},"maxItems":3}},)"
                R"("required":["street"],"additionalProperties":false}},"required":["city","days"],"additionalProperties":false})"},
    {"weather_map", R"({"type":"object","properties":{},"additionalProperties":false})"},
    {"add", R"({"type":"object","properties":{"a":{"type":"number"},"b":{"type":"array","items":{"type":"number"},"maxItems":3},)"
            R"("c":{"$ref":"#/$defs/mixed"}},"required":["a"],"additionalProperties":false,)"
            R"("$defs":{"mixed":{"anyOf":[{"type":"integer","maximum":5},{"type":"string","minLength":1},{"type":"null"}]}}})"},
    {"store", R"({"type":"object"})"},
};

api::ToolCallReading reading_with(const grammar::ToolCallSyntax& syntax, const std::vector<std::string>& tokens) {
  std::string json = "[";
  std::vector<std::string> names;
  for (const TestTool& tool : kTools) {
    json += std::string(names.empty() ? "" : ",") + R"({"type":"function","function":{"name":")" + tool.name +
            R"(","parameters":)" + tool.schema + "}}";
    names.emplace_back(tool.name);
  }
  const auto tools = jinja::Value::from_json(json + "]");
  return {.syntax = &syntax, .tools = api::tool_signatures(*tools, names), .hidden_marks = tokens};
}

ToolGuide guide_for(const api::ToolCallReading& reading) {
  ToolGuide guide = {.family = std::string(reading.syntax->family)};
  for (const TestTool& tool : kTools) {
    guide.tools.push_back({.name = tool.name,
                           .schema = tool.schema,
                           .text_arguments = api::text_arguments(*api::find_tool(reading.tools, tool.name))});
  }
  return guide;
}

std::shared_ptr<const grammar::CompiledGrammar> compiled_schema(const char* schema) {
  std::vector<std::string> texts;
  for (int byte = 0; byte < 256; ++byte) texts.emplace_back(1, static_cast<char>(byte));
  const std::vector<std::string_view> views(texts.begin(), texts.end());
  auto store = std::make_unique<grammar::TermStore>();
  auto made = grammar::grammar_from_schema(*store, schema);
  return *grammar::CompiledGrammar::create(std::move(store), std::move(made->grammar),
                                           std::make_shared<const grammar::Vocabulary>(views));
}

// Whether the arguments satisfy the tool's schema.
bool satisfies(const std::string& name, const std::string& arguments) {
  static const std::vector<std::shared_ptr<const grammar::CompiledGrammar>> schemas = [] {
    std::vector<std::shared_ptr<const grammar::CompiledGrammar>> compiled;
    for (const TestTool& tool : kTools) compiled.push_back(compiled_schema(tool.schema));
    return compiled;
  }();
  const auto tool = std::ranges::find(kTools, name, &TestTool::name);
  if (tool == std::end(kTools)) return false;
  grammar::GrammarMatcher matcher(schemas[static_cast<std::size_t>(tool - std::begin(kTools))]);
  for (const char byte : arguments) {
    if (!matcher.accept(static_cast<unsigned char>(byte))) return false;
  }
  return matcher.is_accepting();
}

// Marks between signs that tokenizers keep for control tokens.
std::vector<std::string> control_tokens(const grammar::ToolCallSyntax& syntax) {
  std::vector<std::string> tokens;
  const auto add = [&](std::string_view mark) {
    for (const auto& [open, close] : {std::pair("<|", "|>"), std::pair("<｜", "｜>"), std::pair("[", "]"), std::pair("<", ">")}) {
      const std::size_t begin = mark.find(open);
      if (begin == std::string_view::npos) continue;
      const std::size_t end = mark.find(close, begin);
      if (end == std::string_view::npos) continue;
      const std::string token(mark.substr(begin, end + std::string_view(close).size() - begin));
      if (token.size() > 2 && std::ranges::find(tokens, token) == tokens.end()) tokens.push_back(token);
      return;
    }
  };
  for (const std::string_view mark : {syntax.section_open, syntax.section_close, syntax.open[0], syntax.close, syntax.quote,
                                      syntax.arguments_mark, syntax.name_mark, syntax.call_id_mark, syntax.text_close}) {
    add(mark);
  }
  return tokens;
}

// Marks behind values without quotes, which chance alone would not write.
std::vector<std::string> ends_of_values(const grammar::ToolCallSyntax& syntax) {
  std::vector<std::string> marks;
  for (const std::string_view mark : {syntax.value_close, syntax.quote}) {
    if (!mark.empty()) marks.emplace_back(mark);
  }
  if (syntax.has_value_lines) marks.push_back("\n" + std::string(syntax.value_close));
  if (syntax.tag_mark.empty()) return marks;
  for (const char* key : {"city", "note", "c"}) marks.push_back(std::string(syntax.tag_mark) + "</" + key + ">");
  return marks;
}

JoinedAnswer read_some_cuts(const api::ToolCallReading& reading, std::string_view answer, std::mt19937& random) {
  const JoinedAnswer whole = read_cut(reading, answer, {});
  std::vector<std::size_t> bytes;
  for (std::size_t cut = 1; cut < answer.size(); ++cut) bytes.push_back(cut);
  expect_same(read_cut(reading, answer, bytes), whole, answer);
  for (int round = 0; round < 3; ++round) {
    std::vector<std::size_t> cuts;
    for (const std::size_t cut : bytes) {
      if (random() % 7 == 0) cuts.push_back(cut);
    }
    expect_same(read_cut(reading, answer, cuts), whole, answer);
  }
  return whole;
}

void expect_calls(const JoinedAnswer& read, const std::string& answer) {
  for (const api::ToolCall& call : read.calls) {
    EXPECT_TRUE(call.is_complete) << answer;
    EXPECT_TRUE(satisfies(call.name, call.arguments)) << call.name << " " << call.arguments << "\nin " << answer;
  }
  EXPECT_EQ(read.ends_with_calls, !read.calls.empty()) << answer;
}

class ToolGrammarFamilies : public ::testing::TestWithParam<std::size_t> {
 protected:
  const grammar::ToolCallSyntax& syntax() const { return api::tool_call_syntaxes()[GetParam()]; }
};

void check_samples(const api::ToolCallReading& reading, const ToolGuide& guide, const std::vector<std::string>& tokens,
                   std::mt19937& random) {
  const auto answers = grammar::ToolAnswers::create(guide, tokens);
  ASSERT_TRUE(answers.has_value()) << answers.error().message;
  std::size_t num_calls = 0;
  for (int round = 0; round < kNumAnswers; ++round) {
    const std::string answer = answers->sample(random, ends_of_values(*reading.syntax));
    ASSERT_FALSE(answer.empty()) << "no answer came";
    const JoinedAnswer read = read_some_cuts(reading, answer, random);
    expect_calls(read, answer);
    num_calls += read.calls.size();
    if (!guide.is_demanded) continue;
    EXPECT_FALSE(read.calls.empty()) << answer;
    EXPECT_EQ(read.text, "") << answer;
    EXPECT_TRUE(guide.is_parallel || read.calls.size() == 1) << answer;
  }
  EXPECT_GT(num_calls, 0u);
}

TEST_P(ToolGrammarFamilies, CallsAreReadBack) {
  std::mt19937 random(static_cast<std::uint32_t>(GetParam()) + 5);
  const api::ToolCallReading reading = reading_with(syntax(), {});
  ToolGuide guide = guide_for(reading);
  check_samples(reading, guide, {}, random);
  guide.is_parallel = false;
  check_samples(reading, guide, {}, random);
}

TEST_P(ToolGrammarFamilies, CallsAreReadBackWhereMarksAreControlTokens) {
  std::mt19937 random(static_cast<std::uint32_t>(GetParam()) + 77);
  const std::vector<std::string> tokens = control_tokens(syntax());
  const api::ToolCallReading reading = reading_with(syntax(), tokens);
  const ToolGuide guide = guide_for(reading);
  check_samples(reading, guide, tokens, random);
}

TEST_P(ToolGrammarFamilies, CallsBehindTextsAreReadBack) {
  std::mt19937 random(static_cast<std::uint32_t>(GetParam()) + 901);
  const api::ToolCallReading reading = reading_with(syntax(), {});
  ToolGuide guide = guide_for(reading);
  guide.is_demanded = false;
  const auto answers = grammar::ToolAnswers::create(guide, {});
  ASSERT_TRUE(answers.has_value()) << answers.error().message;
  for (int round = 0; round < kNumAnswers; ++round) {
    const std::string answer = answers->sample(random, ends_of_values(*reading.syntax));
    expect_calls(read_some_cuts(reading, answer, random), answer);
  }
}

INSTANTIATE_TEST_SUITE_P(All, ToolGrammarFamilies, ::testing::Range(std::size_t{0}, api::tool_call_syntaxes().size()),
                         [](const auto& test) {
                           std::string name(api::tool_call_syntaxes()[test.param].family);
                           for (char& c : name) c = c == '-' || c == '.' ? '_' : c;
                           return name;
                         });

}  // namespace
}  // namespace kvasir::server::tool_grammar_families_test
