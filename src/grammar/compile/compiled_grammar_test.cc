#include "grammar/compile/compiled_grammar.h"

#include <gtest/gtest.h>
#include <simdjson.h>

#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/ir/grammar_builder.h"
#include "grammar/match/matcher.h"
#include "grammar/testing/json_grammar.h"

namespace kvasir::grammar::compiled_grammar_test {
namespace {

// Every byte, and pieces of JSON that end in the middle of everything.
std::shared_ptr<const Vocabulary> json_vocabulary() {
  std::vector<std::string> tokens = {""};  // one without text
  for (int byte = 0; byte < 256; ++byte) tokens.emplace_back(1, static_cast<char>(byte));
  for (const char* text :
       {"{\"", "\":", "\": \"", "\",\"", "\"}", "}}", "]]", "[[", "{}", "[]", "tr", "true", "rue,", "null", "12", "1.5",
        "0.", "e+", "-1", "-", ", ", "\n  ", "abc", "bc", "b\"", "b\\", "\\n", "\\u", "\\u00", "\\ud83d", "\\ud83d\\ude00",
        "\\ude00", "00e9", "é", "日本", "\xE6\x97", "\xA5", "\xF0\x9F", "\x98\x80", "a\": [1, ", "\"\"", "\" ", "  ",
        "a\",", "1,", "1]", "2}"}) {
    tokens.emplace_back(text);
  }
  const std::vector<std::string_view> views(tokens.begin(), tokens.end());
  return std::make_shared<const Vocabulary>(views);
}

std::shared_ptr<const CompiledGrammar> compile_json() {
  auto store = std::make_unique<TermStore>();
  Grammar grammar = json_grammar(*store);
  return *CompiledGrammar::create(std::move(store), std::move(grammar), json_vocabulary());
}

bool accepts(const std::shared_ptr<const CompiledGrammar>& grammar, std::string_view text) {
  GrammarMatcher matcher(grammar);
  for (const char byte : text) {
    if (!matcher.accept(static_cast<TokenId>(static_cast<unsigned char>(byte)) + 1)) return false;
  }
  return matcher.is_accepting();
}

TEST(CompiledGrammar, TakesJsonAndNothingElse) {
  const auto grammar = compile_json();
  for (const char* text :
       {"{}", "[]", "1", "-0.5e+10", "\"\"", "\"a\\n\\u00e9\\ud83d\\ude00\"", "{\"a\":[1,2,{\"b\":null}],\"c\":\"日本\"}",
        "[ 1, 2 ]", "[\n  1,\n  2\n]", "true", "[[[[]]]]", "\"\x7F\"", "\"\xF0\x9F\x98\x80\""}) {
    EXPECT_TRUE(accepts(grammar, text)) << text;
  }
  for (const char* text : {"", "{", "[1,]", "01", "+1", "1.", "nul", "{\"a\"}", "{a:1}", "\"\\x\"", "\"\\ud83d\"",
                           "\"\\ude00\"", "\"\\ud83dx\"", "\"\n\"", "\"\xFF\"", "\"\xED\xA0\x80\"", "\"\xC0\x80\"",
                           "\"\\/\"", " 1", "1 ", "[   1]", "\"\\ud83d\\u0041\""}) {
    EXPECT_FALSE(accepts(grammar, text)) << text;
  }
}

// Random texts by the mask alone; at each place the mask is what trying every token says.
TEST(CompiledGrammar, MasksAreWhatEveryTokenSaysOneByOne) {
  const auto grammar = compile_json();
  const std::int32_t num_tokens = grammar->vocabulary().num_tokens();
  std::mt19937 random(7);
  TokenMask mask(num_tokens);
  int num_finished = 0;
  for (int round = 0; round < 60; ++round) {
    GrammarMatcher matcher(grammar);
    std::string text;
    for (int step = 0; step < 60 && !matcher.must_end(); ++step) {
      matcher.fill(mask);
      std::vector<TokenId> allowed;
      for (TokenId token = 0; token < num_tokens; ++token) {
        GrammarMatcher fork = matcher;
        ASSERT_EQ(fork.accept(token), mask.test(token))
            << "'" << text << "' then '" << grammar->vocabulary().text(token) << "'";
        if (mask.test(token)) allowed.push_back(token);
      }
      ASSERT_FALSE(allowed.empty()) << text;
      const TokenId token = allowed[random() % allowed.size()];
      ASSERT_TRUE(matcher.accept(token));
      text += grammar->vocabulary().text(token);
      if (matcher.is_accepting()) {
        simdjson::dom::parser parser;
        const auto error = parser.parse(simdjson::padded_string(text)).error();  // numbers may be too large for it
        EXPECT_TRUE(error == simdjson::SUCCESS || error == simdjson::NUMBER_ERROR) << text;
        ++num_finished;
      }
    }
  }
  EXPECT_GT(num_finished, 20);
  EXPECT_FALSE(grammar->is_exhausted());
}

TEST(CompiledGrammar, RollbackAndForksAreAsNew) {
  const auto grammar = compile_json();
  GrammarMatcher matcher(grammar);
  for (const char byte : std::string_view("{\"a\":[1,")) {
    ASSERT_TRUE(matcher.accept(static_cast<TokenId>(static_cast<unsigned char>(byte)) + 1));
  }
  GrammarMatcher fork = matcher;
  ASSERT_TRUE(fork.accept('2' + 1));
  ASSERT_TRUE(fork.accept(']' + 1));
  EXPECT_FALSE(fork == matcher);
  fork.rollback(2);
  EXPECT_TRUE(fork == matcher);
  EXPECT_FALSE(fork.accept('}' + 1));
  EXPECT_TRUE(fork == matcher);
}

// Elements of a list without bound lead to as few places as elements of a short one.
TEST(CompiledGrammar, ListsComeBackToTheSamePlace) {
  const auto grammar = compile_json();
  GrammarMatcher first(grammar);
  for (const char byte : std::string_view("[1,2,")) first.accept(static_cast<TokenId>(byte) + 1);
  GrammarMatcher later(grammar);
  for (const char byte : std::string_view("[1,22,\"x\",")) later.accept(static_cast<TokenId>(byte) + 1);
  EXPECT_TRUE(first == later);
}

TEST(CompiledGrammar, ForcedTokensAreTheOnlyOnes) {
  auto store = std::make_unique<TermStore>();
  GrammarBuilder builder(*store);
  const RuleId start = builder.declare("start");
  const TermId tail = store->any_of({store->literal("x"), store->literal("y")});
  builder.define(start, builder.text(store->concat(store->literal("\xC2\xA7q"), tail)));
  Grammar rules = builder.finish(start);
  const auto grammar = *CompiledGrammar::create(std::move(store), std::move(rules), json_vocabulary());
  GrammarMatcher matcher(grammar);
  std::vector<TokenId> forced(8);
  ASSERT_EQ(matcher.forced(forced), 3u);
  EXPECT_EQ(forced[0], 0xC2 + 1);
  EXPECT_EQ(forced[1], 0xA7 + 1);
  EXPECT_EQ(forced[2], 'q' + 1);
}

}  // namespace
}  // namespace kvasir::grammar::compiled_grammar_test
