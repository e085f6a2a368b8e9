#include "grammar/ir/text_sampler.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <string_view>

#include "grammar/ebnf/ebnf_grammar.h"
#include "grammar/testing/byte_matcher.h"

namespace kvasir::grammar::text_sampler_test {
namespace {

std::optional<std::string> least(std::string_view text) {
  TermStore store;
  const Grammar grammar = grammar_from_ebnf(store, text).value();
  Derivatives derivatives(store);
  ByteStates states(store, derivatives);
  return TextSampler(grammar, states).least();
}

TEST(TextSampler, TheLeastTextIsAShortestOne) {
  EXPECT_EQ(least("root ::= \"abc\" | \"de\" | [x-z]{3}"), "de");
  EXPECT_EQ(least("root ::= a a\na ::= \"(\" root \")\" | \"xy\" | \"xyz\""), "xyxy");
  EXPECT_EQ(least("root ::= a{3,5} \"!\"\na ::= a \"b\" | \"c\""), "ccc!");
  EXPECT_EQ(least("root ::= (n)* \"x\"\nn ::= n n | \"\" | \"a\""), "x") << "no way goes in a circle";
  EXPECT_EQ(least("root ::= [^a]"), "0");
}

TEST(TextSampler, RandomTextsAreOfTheGrammar) {
  constexpr std::string_view kText =
      "root ::= \"[\" (value (\",\" value)*)? \"]\"\nvalue ::= root | [0-9]{2,4} | \"'\" [^'é]* \"'\" | pair{1,2}\n"
      "pair ::= \"(\" value \")\"";
  TermStore store;
  const Grammar grammar = grammar_from_ebnf(store, kText).value();
  Derivatives derivatives(store);
  ByteStates states(store, derivatives);
  TextSampler sampler(grammar, states);
  const auto guide = compile_for_bytes([&](TermStore& other) { return grammar_from_ebnf(other, kText); }).value();
  std::mt19937_64 random(3);
  std::size_t longest = 0;
  for (int i = 0; i < 200; ++i) {
    const auto text = sampler.random(random, 60);
    ASSERT_TRUE(text.has_value());
    EXPECT_TRUE(accepts_bytes(guide, *text)) << *text;
    longest = std::max(longest, text->size());
  }
  EXPECT_GT(longest, 30u);
}

}  // namespace
}  // namespace kvasir::grammar::text_sampler_test
