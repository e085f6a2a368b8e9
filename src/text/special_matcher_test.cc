#include "text/special_matcher.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/testing/synthetic_vocab.h"

namespace kvasir::text::special_matcher_test {
namespace {

Vocab vocab_of(const std::vector<std::string>& texts) {
  VocabData data = {.model = "llama"};
  for (const std::string& text : texts) add_token(data, text, TokenType::kUserDefined);
  return Vocab::create(std::move(data)).value();
}

SpecialMatcher matcher_of(const Vocab& vocab) {
  std::vector<TokenId> all;
  for (TokenId id = 0; id < vocab.num_tokens(); ++id) all.push_back(id);
  return SpecialMatcher(special_tokens_of(vocab, all));
}

// "[token]plain[token]"
std::string show(const std::vector<Fragment>& fragments) {
  std::string shown;
  for (const Fragment& fragment : fragments) {
    const bool is_plain = fragment.token == kNoToken;
    shown += is_plain ? "" : "[";
    shown += fragment.text;
    shown += is_plain ? "" : "]";
  }
  return shown;
}

std::string split(const std::vector<std::string>& tokens, std::string_view text) {
  const Vocab vocab = vocab_of(tokens);
  return show(matcher_of(vocab).split(text));
}

// The definition: cut at the first place where any token matches, by the longest one there.
std::string split_by_definition(const std::vector<std::string>& tokens, std::string_view text) {
  std::vector<Fragment> fragments;
  std::size_t plain_begin = 0;
  for (std::size_t at = 0; at < text.size();) {
    std::string_view longest;
    for (const std::string& token : tokens) {
      if (token.size() > longest.size() && text.substr(at).starts_with(token)) longest = token;
    }
    if (longest.empty()) {
      ++at;
      continue;
    }
    if (at > plain_begin) fragments.push_back({text.substr(plain_begin, at - plain_begin)});
    fragments.push_back({text.substr(at, longest.size()), 0});
    plain_begin = at += longest.size();
  }
  if (plain_begin < text.size()) fragments.push_back({text.substr(plain_begin)});
  return show(fragments);
}

TEST(SpecialMatcher, CutsTextAtTokens) {
  EXPECT_EQ(split({"<a>", "<b>"}, "x<a><b>y<a"), "x[<a>][<b>]y<a");
  EXPECT_EQ(split({"<a>"}, ""), "");
  EXPECT_EQ(split({"<a>"}, "plain"), "plain");
}

TEST(SpecialMatcher, TakesTheTokenThatBeginsFirstAndOfSeveralTheLongest) {
  EXPECT_EQ(split({"\n", "\n\n", "\n\n\n"}, "\n\n\n\n\nx\n"), "[\n\n\n][\n\n]x[\n]");
  EXPECT_EQ(split({"ab", "bcd"}, "abcd"), "[ab]cd");  // though bcd is longer
  EXPECT_EQ(split({"a", "aab", "bcde"}, "aabcde"), "[aab]cde");
}

TEST(SpecialMatcher, AgreesWithItsDefinitionOnRandomTexts) {
  std::mt19937 random(1);
  const auto random_text = [&](std::size_t max_size) {
    std::string text(1 + random() % max_size, ' ');
    for (char& c : text) c = static_cast<char>('a' + random() % 3);
    return text;
  };
  for (int round = 0; round < 2000; ++round) {
    std::vector<std::string> tokens;
    for (int i = 0; i < 5; ++i) {
      if (std::string token = random_text(5); std::ranges::count(tokens, token) == 0) tokens.push_back(token);
    }
    const std::string text = random_text(40);
    ASSERT_EQ(split(tokens, text), split_by_definition(tokens, text)) << "round " << round;
  }
}

// Visible tokens as given, then the hidden ones.
Vocab vocab_of(const std::vector<std::string>& visible, const std::vector<std::string>& hidden) {
  VocabData data = {.model = "llama"};
  for (const std::string& text : visible) add_token(data, text, TokenType::kUserDefined);
  for (const std::string& text : hidden) add_token(data, text, TokenType::kControl);
  return Vocab::create(std::move(data)).value();
}

TEST(SpecialMatcher, NoHiddenTokenBeginsWhereTheCallerBarsIt) {
  const Vocab vocab = vocab_of({"<b>"}, {"<|end|>", "<b>|x"});
  const SpecialMatcher matcher = matcher_of(vocab);
  const std::string text = "<|end|>a<|end|><b>|x<b>|x";
  EXPECT_EQ(show(matcher.split(text)), "[<|end|>]a[<|end|>][<b>|x][<b>|x]");
  const std::vector<std::size_t> plain_at = {8, 15};
  EXPECT_EQ(show(matcher.split(text, plain_at)), "[<|end|>]a<|end|>[<b>]|x[<b>|x]");
}

TEST(SpecialMatcher, SeesWhereAHiddenTokenBeginsOrMayBeginOnceMoreTextFollows) {
  const Vocab vocab = vocab_of({"\n\n", "<b>"}, {"<|end|>", "<s>"});
  const SpecialMatcher matcher = matcher_of(vocab);
  using Starts = std::vector<std::size_t>;
  EXPECT_EQ(matcher.hidden_starts("plain < text\n\n<b>"), Starts{});
  EXPECT_EQ(matcher.hidden_starts("<s>x<|end|>"), (Starts{0, 4}));
  EXPECT_EQ(matcher.hidden_starts("to be <|en"), Starts{6});
  EXPECT_EQ(matcher.hidden_starts("trimmed <|  \n"), Starts{8});
  EXPECT_EQ(matcher.hidden_starts("\n"), Starts{});
}

TEST(SpecialMatcher, TakesAMegabyteOfOneOverlappingToken) {
  std::vector<std::string> tokens;
  for (std::size_t size = 1; size <= 31; ++size) tokens.emplace_back(size, '\n');
  const Vocab vocab = vocab_of(tokens);
  const std::string text(1u << 20, '\n');
  EXPECT_EQ(matcher_of(vocab).split(text).size(), text.size() / 31 + 1);
}

}  // namespace
}  // namespace kvasir::text::special_matcher_test
