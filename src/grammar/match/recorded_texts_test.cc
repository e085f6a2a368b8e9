// Keys that come once, and items that differ.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "grammar/match/matcher.h"
#include "grammar/schema/json_schema.h"
#include "grammar/testing/byte_matcher.h"

namespace kvasir::grammar::recorded_texts_test {
namespace {

using Compiled = std::shared_ptr<const CompiledGrammar>;

Compiled compile(std::string_view schema, std::shared_ptr<const Vocabulary> vocabulary, const Limits& limits = {}) {
  auto store = std::make_unique<TermStore>();
  auto made = grammar_from_schema(*store, schema, {.blanks = JsonBlanks::kCompact});
  if (!made) ADD_FAILURE() << schema << ": " << made.error().message;
  return *CompiledGrammar::create(std::move(store), std::move(made->grammar), std::move(vocabulary), limits);
}

// Signs one by one, and pieces in which keys and items begin, end, and come twice.
std::shared_ptr<const Vocabulary> make_vocabulary(std::mt19937& random) {
  std::vector<std::string> tokens = {""};
  for (const char sign : std::string_view("abx0123456789-\"\\{}[],:. ")) tokens.emplace_back(1, sign);
  for (const char* piece : {"true", "false", "null", "\"a\"", "\"a\":", "{\"", "\":", "\",\"", ",\"", "{\"a\":1,\"a\"", "\":1,\"a\":",
                            "a\":1,\"a", "\"ab\":[", "\"},\"", "}},\"a\"", "],[", "1,1", "1,2", ",1", "12", "1]", "\"]", "\",\"a\"",
                            "{\"a\":1", "\":{\"", ":{\"a\":1},\"a\"", "},{\"a\":", "\"a\",\"b\"", "1},", "null,null"}) {
    tokens.emplace_back(piece);
  }
  const std::vector<std::string> signs = {"a", "b", "\"", ":", ",", "1", "{", "}", "[", "]", "2"};
  while (tokens.size() < 150) {
    std::string token;
    for (std::size_t i = 2 + random() % 5; i > 0; --i) token += signs[random() % signs.size()];
    tokens.push_back(token);
  }
  const std::vector<std::string_view> views(tokens.begin(), tokens.end());
  return std::make_shared<const Vocabulary>(views);
}

const std::vector<std::string_view>& schemas() {
  static const std::vector<std::string_view> kSchemas = {
      R"({"type":"object"})",
      R"({"type":"object","additionalProperties":{"type":"integer"}})",
      R"({"properties":{"a":{"type":"integer"}},"additionalProperties":{"type":"object"},"type":"object"})",
      R"({"type":"object","propertyNames":{"enum":["a","ab","b"]},"minProperties":2,"additionalProperties":{"maximum":9}})",
      R"({"type":"object","propertyNames":{"pattern":"^[ab]$"},"additionalProperties":{"type":"null"}})",
      R"({"type":"object","patternProperties":{"^a":{"type":"integer"},"^b":{"type":"object"}},"additionalProperties":false,"maxProperties":3})",
      R"({"type":"object","propertyNames":{"maxLength":1},"additionalProperties":true})",
      R"({"anyOf":[{"type":"object","additionalProperties":{"type":"integer"}},
                   {"type":"object","properties":{"a":{}},"additionalProperties":{"type":["null","object"]}}]})",
      R"({"type":"array","uniqueItems":true,"items":{"type":"integer"}})",
      R"({"type":"array","uniqueItems":true,"items":{"type":"integer","minimum":1,"maximum":12},"minItems":2})",
      R"({"type":"array","uniqueItems":true,"items":{"enum":["a","ab",1,12,null,true]},"minItems":3})",
      R"({"type":"array","uniqueItems":true,"items":{"type":["string","boolean","number"]}})",
      R"({"type":"array","uniqueItems":true,"items":{"type":"string","pattern":"^[ab]{1,2}$"}})",
      R"({"type":"array","uniqueItems":true,"prefixItems":[{"enum":[1,2]},{"enum":[1,2]}],"items":{"type":"integer"}})",
      R"({"type":"array","uniqueItems":true,"items":{"type":"object","properties":{"b":{},"a":{"type":"integer"}},"required":["a"]}})",
      R"({"type":"array","uniqueItems":true,"items":{"type":"object","properties":{"a":{"enum":["a","b"]}},"required":["a"]}})",
      R"({"type":"array","uniqueItems":true,"contains":{"minimum":10},"items":{"type":"integer"}})",
      R"({"anyOf":[{"type":"array","uniqueItems":true,"items":{"type":"integer"}},{"type":"array","items":{"type":["object","number"]}}]})",
      R"({"type":"array","uniqueItems":true})",
  };
  return kSchemas;
}

std::vector<TokenId> allowed_tokens(const GrammarMatcher& matcher, TokenMask& mask) {
  matcher.fill(mask);
  std::vector<TokenId> allowed;
  for (TokenId token = 0; token < mask.num_tokens(); ++token) {
    if (mask.test(token)) allowed.push_back(token);
  }
  return allowed;
}

// Objects and lists close early, so that walks come to an end.
TokenId draw(const std::vector<TokenId>& allowed, const Vocabulary& vocabulary, std::size_t num_steps, std::mt19937& random) {
  if (num_steps > 24) {
    for (const TokenId token : allowed) {
      const std::string_view text = vocabulary.text(token);
      if (text == "}" || text == "]" || text == "\"") return token;
    }
  }
  return allowed[random() % allowed.size()];
}

bool accepts_text(GrammarMatcher& bytes, std::string_view text) {
  return std::ranges::all_of(text, [&](char byte) { return bytes.accept(static_cast<TokenId>(static_cast<unsigned char>(byte))); });
}

// A mask allows a token exactly where its bytes may follow one by one, and where it is accepted.
TEST(RecordedTexts, MasksAreWhatBytesSay) {
  std::mt19937 random(7);
  const auto vocabulary = make_vocabulary(random);
  TokenMask mask(vocabulary->num_tokens());
  for (const std::string_view schema : schemas()) {
    SCOPED_TRACE(schema);
    const Compiled grammar = compile(schema, vocabulary);
    const Compiled of_bytes = compile(schema, byte_vocabulary());
    for (int round = 0; round < 40; ++round) {
      GrammarMatcher matcher(grammar);
      GrammarMatcher bytes(of_bytes);
      std::string text;
      for (std::size_t step = 0; step < 60; ++step) {
        const std::vector<TokenId> allowed = allowed_tokens(matcher, mask);
        for (TokenId token = 1; token < vocabulary->num_tokens(); ++token) {
          GrammarMatcher fork = bytes;
          ASSERT_EQ(accepts_text(fork, vocabulary->text(token)), mask.test(token)) << text << " then " << vocabulary->text(token);
          GrammarMatcher other = matcher;
          ASSERT_EQ(other.accept(token), mask.test(token)) << text << " then " << vocabulary->text(token);
        }
        const CompiledGrammar::Choices choices = matcher.choices();
        ASSERT_EQ(choices.count, mask.count()) << text;
        ASSERT_EQ(choices.only, mask.only()) << text;
        ASSERT_EQ(matcher.must_end(), allowed.empty()) << text;
        if (allowed.empty()) break;
        const TokenId token = draw(allowed, *vocabulary, step, random);
        ASSERT_TRUE(matcher.accept(token));
        ASSERT_TRUE(accepts_text(bytes, vocabulary->text(token)));
        ASSERT_EQ(matcher.is_accepting(), bytes.is_accepting());
        text += vocabulary->text(token);
      }
    }
  }
}

TEST(RecordedTexts, RollbackForksTreesAndForcedRunsAreAsFreshMatchers) {
  std::mt19937 random(3);
  const auto vocabulary = make_vocabulary(random);
  TokenMask mask(vocabulary->num_tokens());
  TokenMask other(vocabulary->num_tokens());
  for (const std::string_view schema : schemas()) {
    SCOPED_TRACE(schema);
    const Compiled grammar = compile(schema, vocabulary);
    const Compiled unkept = compile(schema, vocabulary, {.max_kept_bytes = 0});
    for (int round = 0; round < 20; ++round) {
      GrammarMatcher matcher(grammar);
      std::vector<TokenId> tokens;
      for (std::size_t step = 0; step < 40; ++step) {
        if (random() % 5 == 0 && !tokens.empty()) {
          const std::size_t count = 1 + random() % tokens.size();
          matcher.rollback(count);
          tokens.resize(tokens.size() - count);
        }
        const std::vector<TokenId> allowed = allowed_tokens(matcher, mask);
        if (allowed.empty()) break;
        tokens.push_back(draw(allowed, *vocabulary, step, random));
        ASSERT_TRUE(matcher.accept(tokens.back()));
      }
      GrammarMatcher fresh(grammar);
      GrammarMatcher cold(unkept);
      for (const TokenId token : tokens) ASSERT_TRUE(fresh.accept(token) && cold.accept(token));
      EXPECT_TRUE(fresh == matcher);
      matcher.fill(mask);
      cold.fill(other);
      EXPECT_EQ(mask, other);
      std::vector<TokenId> forced(8);
      const std::size_t num_forced = matcher.forced(forced);
      EXPECT_TRUE(fresh == matcher);
      GrammarMatcher fork = matcher;
      for (std::size_t i = 0; i < num_forced; ++i) {
        fork.fill(mask);
        EXPECT_EQ(mask.only(), forced[i]);
        ASSERT_TRUE(fork.accept(forced[i]));
      }
      std::vector<DraftNode> nodes;
      for (std::int32_t i = 0; i < 14; ++i) {
        const auto parent = static_cast<std::int32_t>(random() % (static_cast<unsigned>(i) + 1)) - 1;
        GrammarMatcher at = fresh;
        bool is_way = true;
        std::vector<TokenId> way;
        for (std::int32_t node = parent; node >= 0; node = nodes[static_cast<std::size_t>(node)].parent) {
          way.insert(way.begin(), nodes[static_cast<std::size_t>(node)].token);
        }
        for (const TokenId token : way) is_way = is_way && at.accept(token);
        const std::vector<TokenId> allowed = is_way ? allowed_tokens(at, mask) : std::vector<TokenId>();
        const auto any = static_cast<TokenId>(random() % static_cast<unsigned>(vocabulary->num_tokens()));
        nodes.push_back({parent, allowed.empty() || i % 4 == 3 ? any : allowed[random() % allowed.size()]});
      }
      std::vector<TokenMask> masks(nodes.size(), TokenMask(vocabulary->num_tokens()));
      matcher.fill_tree(nodes, masks);
      EXPECT_TRUE(fresh == matcher);
      for (std::size_t i = 0; i < nodes.size(); ++i) {
        GrammarMatcher at = fresh;
        std::vector<TokenId> way;
        for (auto node = static_cast<std::int32_t>(i); node >= 0; node = nodes[static_cast<std::size_t>(node)].parent) {
          way.insert(way.begin(), nodes[static_cast<std::size_t>(node)].token);
        }
        mask.clear();
        if (std::ranges::all_of(way, [&](TokenId token) { return at.accept(token); })) at.fill(mask);
        EXPECT_EQ(mask, masks[i]);
      }
    }
  }
}

TEST(RecordedTexts, StatesAreEqualWhenTheirScopesAre) {
  const Compiled grammar = compile(R"({"type":"object"})", byte_vocabulary());
  const auto behind = [&](std::string_view text) {
    GrammarMatcher matcher(grammar);
    EXPECT_TRUE(accepts_text(matcher, text)) << text;
    return matcher;
  };
  EXPECT_TRUE(behind(R"({"a":1,)") == behind(R"({"a":2,)"));
  EXPECT_FALSE(behind(R"({"a":1,)") == behind(R"({"b":1,)"));
  EXPECT_TRUE(behind(R"({"a":{"x":1},)") == behind(R"({"a":{"y":1},)"));
  EXPECT_FALSE(behind(R"({"a":{"x":1,)") == behind(R"({"a":{"y":1,)"));
  EXPECT_FALSE(behind(R"({"a":1,"b)") == behind(R"({"a":1,"c)"));
}

TEST(RecordedTexts, KeysComeOnce) {
  for (const auto& [schema, good, bad] :
       std::vector<std::tuple<std::string_view, std::vector<std::string_view>, std::vector<std::string_view>>>{
           {R"({"type":"object"})",
            {R"({"a":1,"b":1})", R"({"a":{"a":1},"b":{"a":1}})", R"({})", R"({"a":[{"a":1},{"a":1}]})",
             R"({"\u0001":1,"\u001f":1})"},
            {R"({"a":1,"a":2})", R"({"a":1,"b":2,"a":3})", R"({"b":{"a":1,"a":1}})", R"({"":1,"":2})", R"({"\u001f":1,"\u001F":2})",
             R"({"a":1,"\u0061":2})"}},
           {R"({"properties":{"a":{}},"minProperties":3})",
            {R"({"a":1,"b":2,"c":3})", R"({"b":1,"c":2,"d":3})"},
            {R"({"a":1,"b":2,"b":3})", R"({"a":1,"b":2})"}},
           {R"({"properties":{"x":{"properties":{"y":{}}}}})", {R"({"$schema":"s","x":{}})", R"({"x":{},"$schema":"s"})"},
            {R"({"$schema":"s","x":{},"$schema":"s"})", R"({"$schema":"s","$schema":"s"})"}},
           {R"({"additionalProperties":{"type":"integer"},"propertyNames":{"pattern":"^[ab]$"},"type":"object"})",
            {R"({"a":1,"b":2})", R"({"b":1})"}, {R"({"a":1,"a":2})", R"({"a":1,"b":2,"a":1})"}}}) {
    const Compiled grammar = compile(schema, byte_vocabulary());
    for (const std::string_view text : good) EXPECT_TRUE(accepts_bytes(grammar, text)) << schema << " " << text;
    for (const std::string_view text : bad) EXPECT_FALSE(accepts_bytes(grammar, text)) << schema << " " << text;
  }
}

TEST(RecordedTexts, ItemsDiffer) {
  for (const auto& [schema, good, bad] :
       std::vector<std::tuple<std::string_view, std::vector<std::string_view>, std::vector<std::string_view>>>{
           {R"({"type":"array","uniqueItems":true,"items":{"type":"number"}})",
            {"[]", "[1]", "[1,2]", "[1,12,-1,0.5,0]", "[0.1,0.01]"},
            {"[1,1]", "[1,1.0]", "[1,2,1]", "[0,-0]", "[0.5,0.50]", "[1e1,10]", "[0.1,0.10000000000000000001]"}},
           {R"({"type":"array","uniqueItems":true,"items":{"type":["string","null","boolean"]}})",
            {R"(["a","b"])", R"(["a",null,true,false,""])", R"(["null",null])"},
            {R"(["a","a"])", R"([null,null])", R"([true,"a",true])", R"(["a","\u0061"])", R"(["",""])"}},
           {R"({"type":"array","uniqueItems":true,"items":{"type":"object","properties":{"n":{"type":"integer"},"id":{"type":["string","integer"]}},"required":["id"]}})",
            {R"([{"id":"a"},{"id":"b"}])", R"([{"n":1,"id":1},{"n":1,"id":2,"z":[{"id":1}]}])", R"([{"id":"1"},{"id":1}])"},
            {R"([{"id":"a"},{"id":"a"}])", R"([{"id":1,"x":1},{"id":1,"x":1}])"}},
           {R"({"type":"object","additionalProperties":{"type":"array","uniqueItems":true,"items":{"type":"integer"}}})",
            {R"({"k":[1,2],"l":[1,2]})"}, {R"({"k":[1,1]})", R"({"k":[1,2],"k":[1,2]})"}}}) {
    const Compiled grammar = compile(schema, byte_vocabulary());
    for (const std::string_view text : good) EXPECT_TRUE(accepts_bytes(grammar, text)) << schema << " " << text;
    for (const std::string_view text : bad) EXPECT_FALSE(accepts_bytes(grammar, text)) << schema << " " << text;
  }
}

TEST(RecordedTexts, WhatCannotBeToldApartIsRefused) {
  TermStore store;
  for (const std::string_view schema :
       {R"({"type":"array","uniqueItems":true,"items":{"type":"array"}})",
        R"({"type":"array","uniqueItems":true,"contains":{"const":1},"items":{"type":"integer"}})",
        R"({"type":"array","uniqueItems":true,"items":{"type":"object","properties":{"a":{"type":"string"}}}})",
        R"({"type":"array","uniqueItems":true,"items":{"type":"object","properties":{"a":{"type":"array"}},"required":["a"]}})"}) {
    const auto made = grammar_from_schema(store, schema);
    ASSERT_FALSE(made.has_value()) << schema;
    EXPECT_NE(made.error().message.find("uniqueItems"), std::string::npos) << made.error().message;
  }
}

}  // namespace
}  // namespace kvasir::grammar::recorded_texts_test
