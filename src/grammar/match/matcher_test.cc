#include "grammar/match/matcher.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "grammar/ir/grammar_builder.h"
#include "grammar/regex/pattern.h"
#include "grammar/schema/json_schema.h"
#include "grammar/testing/json_grammar.h"

namespace kvasir::grammar::matcher_test {
namespace {

using Compiled = std::shared_ptr<const CompiledGrammar>;

std::shared_ptr<const Vocabulary> make_tokens(const std::vector<std::string>& tokens) {
  const std::vector<std::string_view> views(tokens.begin(), tokens.end());
  return std::make_shared<const Vocabulary>(views);
}

// Some letters and signs, and random pieces of them; two tokens have no text, some have the same.
std::shared_ptr<const Vocabulary> random_vocabulary(std::mt19937& random, std::size_t num_tokens) {
  const std::vector<std::string> signs = {"a", "b", "e", "0", "1", "\"", "\\", "{", "}", "[", "]", ",", ":", " ", "n", "u",
                                          "-", ".", "\n", "t", "r", "l", "s", "f", "é", "日", "\xF0\x9F\x98\x80"};
  std::vector<std::string> tokens = {"", ""};
  for (const std::string& sign : signs) tokens.push_back(sign);
  for (const char byte : {'\xC3', '\xA9', '\xE6', '\x97', '\xA5', '\xF0', '\x9F', '\x98', '\x80'}) {
    tokens.emplace_back(1, byte);
  }
  while (tokens.size() < num_tokens) {
    std::string token;
    for (std::size_t i = 1 + random() % 5; i > 0; --i) token += signs[random() % signs.size()];
    if (random() % 8 == 0) token.pop_back();  // perhaps within a character
    if (!token.empty()) tokens.push_back(token);
  }
  return make_tokens(tokens);
}

Compiled compile_rules(std::unique_ptr<TermStore> store, Grammar rules, std::shared_ptr<const Vocabulary> vocabulary,
                       const Limits& limits = {}) {
  return *CompiledGrammar::create(std::move(store), std::move(rules), std::move(vocabulary), limits);
}

Compiled compile_pattern(std::string_view pattern, std::shared_ptr<const Vocabulary> vocabulary,
                         const Limits& limits = {}) {
  auto store = std::make_unique<TermStore>();
  GrammarBuilder builder(*store);
  const RuleId start = builder.declare("start");
  builder.define(start, builder.text(*pattern_language(*store, pattern, PatternFit::kWhole)));
  Grammar rules = builder.finish(start);
  return compile_rules(std::move(store), std::move(rules), std::move(vocabulary), limits);
}

Compiled compile_schema(std::string_view schema, std::shared_ptr<const Vocabulary> vocabulary,
                        const Limits& limits = {}) {
  auto store = std::make_unique<TermStore>();
  Grammar rules = std::move(grammar_from_schema(*store, schema)->grammar);
  return compile_rules(std::move(store), std::move(rules), std::move(vocabulary), limits);
}

// S ::= S S | "a" | "" | "(" S ")" with several trees for one text, and a left recursion behind words.
Compiled compile_ambiguous(std::shared_ptr<const Vocabulary> vocabulary, const Limits& limits = {}) {
  auto store = std::make_unique<TermStore>();
  GrammarBuilder builder(*store);
  const RuleId start = builder.declare("start");
  const auto text = [&](std::string_view bytes) { return builder.text(store->literal(bytes)); };
  const Part self = builder.rule(start);
  const Part letters = builder.text(store->repeat(store->literal("b"), 1, kUnbounded));
  builder.define(start, builder.choice(std::array{
                            builder.sequence(std::array{self, self}), text("a"), text("ab"), builder.text(kEmptyText),
                            builder.sequence(std::array{text("["), self, text("]")}),
                            builder.sequence(std::array{self, text(","), letters})}));
  Grammar rules = builder.finish(start);
  return compile_rules(std::move(store), std::move(rules), std::move(vocabulary), limits);
}

std::vector<Compiled> many_grammars(const std::shared_ptr<const Vocabulary>& vocabulary, const Limits& limits = {}) {
  std::vector<Compiled> grammars;
  for (const char* pattern : {"[a-z]*", "(ab|b)*e?", "[^\"]{2,9}", "(a|b|ab){1,4}[0-9]+", "(.|\n)*", "[ -~]+é?",
                              "a{3,7}b{0,2}(,a{3,7}b{0,2})*", "e[^b]*(b[^b]*){0,3}", "[01]+(\\.[01]+)?"}) {
    grammars.push_back(compile_pattern(pattern, vocabulary, limits));
  }
  for (const char* schema :
       {"{}", R"({"type":"string","maxLength":6})", R"({"type":"string","pattern":"^[ab]*$","minLength":3})",
        R"({"properties":{"a":{"type":"integer"},"ab":{"enum":["a","ab","é"]},"b":{"type":"boolean"}},
            "additionalProperties":false})",
        R"({"type":"array","items":{"type":"string","pattern":"ab"},"maxItems":4})",
        R"({"type":"number","minimum":-10,"maximum":11.1})",
        R"({"properties":{"ab":{"type":"integer"},"abe":{"type":"string","minLength":2},"b1":{}}})",
        R"({"type":"string","not":{"enum":["ab","abe","éa"]}})"}) {
    grammars.push_back(compile_schema(schema, vocabulary, limits));
  }
  grammars.push_back(compile_ambiguous(vocabulary, limits));
  return grammars;
}

// A token that the mask allows; kNoToken when none is left.
TokenId random_token(const GrammarMatcher& matcher, TokenMask& mask, std::mt19937& random) {
  matcher.fill(mask);
  std::vector<TokenId> allowed;
  for (TokenId token = 0; token < mask.num_tokens(); ++token) {
    if (mask.test(token)) allowed.push_back(token);
  }
  return allowed.empty() ? kNoToken : allowed[random() % allowed.size()];
}

// Every token tried on a fork says what the mask says.
void expect_brute_force(const GrammarMatcher& matcher, TokenMask& mask, const std::string& text) {
  const Vocabulary& vocabulary = matcher.grammar().vocabulary();
  matcher.fill(mask);
  for (TokenId token = 0; token < vocabulary.num_tokens(); ++token) {
    GrammarMatcher fork = matcher;
    ASSERT_EQ(fork.accept(token), mask.test(token)) << "'" << text << "' then '" << vocabulary.text(token) << "'";
  }
  const CompiledGrammar::Choices choices = matcher.choices();
  EXPECT_EQ(choices.count, mask.count());
  EXPECT_EQ(choices.only, mask.only());
  EXPECT_TRUE(mask.count() > 0 || matcher.must_end()) << text;
  EXPECT_EQ(matcher.must_end(), mask.count() == 0) << text;
}

TEST(GrammarMatcher, MasksAreWhatEveryTokenSaysForManyGrammars) {
  for (unsigned seed = 0; seed < 3; ++seed) {
    std::mt19937 random(seed);
    const auto vocabulary = random_vocabulary(random, 160);
    TokenMask mask(vocabulary->num_tokens());
    std::size_t number = 0;
    for (const Compiled& grammar : many_grammars(vocabulary)) {
      SCOPED_TRACE(number++);
      for (int round = 0; round < 12; ++round) {
        GrammarMatcher matcher(grammar);
        std::string text;
        for (int step = 0; step < 12; ++step) {
          expect_brute_force(matcher, mask, text);
          if (testing::Test::HasFatalFailure()) return;
          const TokenId token = random_token(matcher, mask, random);
          if (token == kNoToken) break;
          ASSERT_TRUE(matcher.accept(token));
          text += vocabulary->text(token);
        }
      }
    }
  }
}

// What is kept, and what other grammars left in the atlas, changes no mask.
TEST(GrammarMatcher, MasksDoNotDependOnWhatIsKept) {
  std::mt19937 random(5);
  const auto warm = random_vocabulary(random, 160);
  random.seed(5);
  const auto cold = random_vocabulary(random, 160);
  const std::vector<Compiled> first = many_grammars(warm);
  const std::vector<Compiled> second = many_grammars(warm);
  const std::vector<Compiled> unkept = many_grammars(cold, {.max_kept_bytes = 0});
  TokenMask mask(warm->num_tokens());
  TokenMask other(warm->num_tokens());
  for (std::size_t i = 0; i < first.size(); ++i) {
    for (int round = 0; round < 10; ++round) {
      GrammarMatcher a(first[i]);
      GrammarMatcher b(second[i]);
      GrammarMatcher c(unkept[i]);
      for (int step = 0; step < 12; ++step) {
        const TokenId token = random_token(a, mask, random);
        b.fill(other);
        ASSERT_EQ(mask, other) << i;
        c.fill(other);
        ASSERT_EQ(mask, other) << i;
        if (token == kNoToken) break;
        ASSERT_TRUE(a.accept(token) && b.accept(token) && c.accept(token));
        ASSERT_EQ(a.is_accepting(), c.is_accepting());
      }
    }
    EXPECT_EQ(unkept[i]->kept_bytes(), 0u);
    EXPECT_GT(first[i]->kept_bytes(), 0u);
  }
}

TEST(GrammarMatcher, RollbackForksAndTreesAreAsFreshMatchers) {
  std::mt19937 random(11);
  const auto vocabulary = random_vocabulary(random, 200);
  TokenMask mask(vocabulary->num_tokens());
  for (const Compiled& grammar : many_grammars(vocabulary)) {
    for (int round = 0; round < 10; ++round) {
      GrammarMatcher matcher(grammar);
      std::vector<TokenId> tokens;
      for (int step = 0; step < 20; ++step) {
        if (random() % 4 == 0 && !tokens.empty()) {
          const std::size_t count = 1 + random() % tokens.size();
          matcher.rollback(count);
          tokens.resize(tokens.size() - count);
        }
        const TokenId token = random_token(matcher, mask, random);
        if (token == kNoToken) break;
        ASSERT_TRUE(matcher.accept(token));
        tokens.push_back(token);
      }
      GrammarMatcher fresh(grammar);
      for (const TokenId token : tokens) ASSERT_TRUE(fresh.accept(token));
      EXPECT_TRUE(fresh == matcher);

      std::vector<DraftNode> nodes;
      for (std::int32_t i = 0; i < 12; ++i) {
        const auto parent = static_cast<std::int32_t>(random() % (static_cast<unsigned>(i) + 1)) - 1;
        nodes.push_back({parent, static_cast<TokenId>(random() % static_cast<unsigned>(vocabulary->num_tokens()))});
      }
      std::vector<TokenMask> masks(nodes.size(), TokenMask(vocabulary->num_tokens()));
      bool is_allowed = true;
      const bool result = matcher.fill_tree(nodes, masks);
      EXPECT_TRUE(fresh == matcher);
      for (std::size_t i = 0; i < nodes.size(); ++i) {
        std::vector<TokenId> way;
        for (std::int32_t at = static_cast<std::int32_t>(i); at >= 0; at = nodes[static_cast<std::size_t>(at)].parent) {
          way.insert(way.begin(), nodes[static_cast<std::size_t>(at)].token);
        }
        GrammarMatcher fork = fresh;
        const bool is_way = std::ranges::all_of(way, [&](TokenId token) { return fork.accept(token); });
        is_allowed = is_allowed && is_way;
        mask.clear();
        if (is_way) fork.fill(mask);
        EXPECT_EQ(mask, masks[i]);
      }
      EXPECT_EQ(result, is_allowed);
    }
  }
}

TEST(GrammarMatcher, ForcedTokensAreTheOnlyOnesOfTheirMasks) {
  std::mt19937 random(3);
  const auto vocabulary = make_tokens({"a", "b", "c", "ab", "{", "}", "\"", ":", "1", "2", ","});
  const Compiled grammar = compile_pattern("(a|bc)(\\{\"b\":1,\"c\":2\\}|\\{\"c\":2\\})c{2}", vocabulary);
  std::vector<TokenId> forced(16);
  TokenMask mask(vocabulary->num_tokens());
  std::size_t num_forced = 0;
  for (int round = 0; round < 50; ++round) {
    GrammarMatcher matcher(grammar);
    while (true) {
      const std::size_t count = matcher.forced(forced);
      num_forced += count;
      for (std::size_t i = 0; i < count; ++i) {
        matcher.fill(mask);
        ASSERT_EQ(mask.only(), forced[i]);
        ASSERT_TRUE(matcher.accept(forced[i]));
      }
      const TokenId token = random_token(matcher, mask, random);
      if (token == kNoToken) break;
      EXPECT_TRUE(matcher.is_accepting() || mask.count() > 1);
      ASSERT_TRUE(matcher.accept(token));
    }
    EXPECT_TRUE(matcher.must_end());
  }
  EXPECT_GT(num_forced, 100u);
}

// SentencePiece's tokens lose a blank where a text begins.
TEST(GrammarMatcher, ABlankIsLostAtTheStartOfAText) {
  const std::vector<std::string_view> tokens = {"", "a", " a", " ", "  ", "b", " b"};
  const std::vector<std::string_view> first_tokens = {"", "a", "a", "", " ", "b", "b"};
  const auto vocabulary = std::make_shared<const Vocabulary>(tokens, first_tokens, /*is_start_behind_special=*/true);
  auto store = std::make_unique<TermStore>();
  GrammarBuilder builder(*store);
  const RuleId start = builder.declare("start");
  const auto text = [&](std::string_view bytes) { return builder.text(store->literal(bytes)); };
  builder.define(start, builder.sequence(std::array{text("a"), builder.token(0), text("b")}));
  Grammar rules = builder.finish(start);
  const Compiled grammar = compile_rules(std::move(store), std::move(rules), vocabulary);
  const auto allowed = [&](const GrammarMatcher& matcher) {
    TokenMask mask(vocabulary->num_tokens());
    matcher.fill(mask);
    std::vector<TokenId> result;
    for (TokenId token = 0; token < mask.num_tokens(); ++token) {
      GrammarMatcher fork = matcher;
      EXPECT_EQ(fork.accept(token), mask.test(token)) << token;
      if (mask.test(token)) result.push_back(token);
    }
    return result;
  };
  GrammarMatcher within(grammar);
  EXPECT_EQ(allowed(within), (std::vector<TokenId>{1}));
  GrammarMatcher matcher(grammar, /*at_text_start=*/true);
  EXPECT_EQ(allowed(matcher), (std::vector<TokenId>{1, 2, 3}));
  ASSERT_TRUE(matcher.accept(3));  // nothing is left of it
  EXPECT_EQ(allowed(matcher), (std::vector<TokenId>{1}));
  ASSERT_TRUE(matcher.accept(1));
  EXPECT_EQ(allowed(matcher), (std::vector<TokenId>{0}));
  ASSERT_TRUE(matcher.accept(0));
  EXPECT_EQ(allowed(matcher), (std::vector<TokenId>{3, 5, 6}));
}

TEST(GrammarMatcher, AnAnswerInTooManyWaysEndsForItselfAlone) {
  std::mt19937 random(1);
  const auto vocabulary = random_vocabulary(random, 60);
  auto store = std::make_unique<TermStore>();
  GrammarBuilder builder(*store);
  const RuleId start = builder.declare("start");
  // Each a may be one of several terminals, each of which goes on.
  std::vector<Part> parts = {builder.text(store->literal("b"))};
  for (std::uint32_t i = 0; i < 6; ++i) {
    const RuleId rule = builder.declare("letters");  // a terminal of its own
    builder.define(rule, builder.text(store->repeat(store->literal("a"), 2 + i, 40 + i)));
    parts.push_back(builder.rule(rule));
  }
  const Part one = builder.choice(parts);
  builder.define(start, builder.sequence(std::array{one, builder.text(store->literal("e"))}));
  Grammar rules = builder.finish(start);
  const Compiled grammar =
      compile_rules(std::move(store), std::move(rules), vocabulary, {.max_places = 1});
  const auto token_of = [&](std::string_view text) {
    TokenId token = 0;
    while (vocabulary->text(token) != text) ++token;
    return token;
  };
  GrammarMatcher plain(grammar);
  ASSERT_TRUE(plain.accept(token_of("b")));
  GrammarMatcher lost(grammar);
  ASSERT_TRUE(lost.accept(token_of("a")));
  EXPECT_TRUE(lost.is_exhausted());
  EXPECT_FALSE(lost.is_accepting());
  EXPECT_EQ(lost.choices().count, 0);
  EXPECT_FALSE(plain.is_exhausted());
  EXPECT_FALSE(grammar->is_exhausted());
  ASSERT_TRUE(plain.accept(token_of("e")));
  EXPECT_TRUE(plain.must_end());
}

TEST(GrammarMatcher, ThreadsShareAGrammar) {
  std::mt19937 random(2);
  const auto vocabulary = random_vocabulary(random, 160);
  const std::vector<Compiled> shared = many_grammars(vocabulary);
  const std::vector<Compiled> alone = many_grammars(vocabulary);
  const auto walk = [&](const std::vector<Compiled>& grammars, unsigned seed) {
    std::mt19937 own(seed);
    std::vector<std::int32_t> counts;
    TokenMask mask(vocabulary->num_tokens());
    for (int round = 0; round < 6; ++round) {
      for (const Compiled& grammar : grammars) {
        GrammarMatcher matcher(grammar);
        for (int step = 0; step < 10; ++step) {
          const TokenId token = random_token(matcher, mask, own);
          counts.push_back(mask.count());
          if (token == kNoToken || !matcher.accept(token)) break;
          counts.push_back(token);
          counts.push_back(matcher.is_accepting() ? 1 : 0);
        }
      }
    }
    return counts;
  };
  std::vector<std::vector<std::int32_t>> results(8);
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < results.size(); ++i) {
    threads.emplace_back([&, i] { results[i] = walk(shared, i / 2); });
  }
  for (std::thread& thread : threads) thread.join();
  for (unsigned i = 0; i < results.size(); ++i) EXPECT_EQ(results[i], walk(alone, i / 2)) << i;
}

}  // namespace
}  // namespace kvasir::grammar::matcher_test
