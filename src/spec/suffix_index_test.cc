#include "spec/suffix_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace kvasir::spec::suffix_index_test {
namespace {

std::vector<TokenId> draft_of(const SuffixIndex& index, std::int32_t num_tokens) {
  std::vector<TokenId> draft;
  index.continue_match(index.longest_match(), num_tokens, draft);
  return draft;
}

TEST(SuffixIndex, FindsTheLongestEndThatOccurredBefore) {
  SuffixIndex index;
  index.append(std::vector<TokenId>{1, 2, 3, 4, 9, 2, 3, 7, 1, 2, 3});
  EXPECT_EQ(index.longest_match().length, 3);
  EXPECT_EQ(draft_of(index, 3), (std::vector<TokenId>{4, 9, 2}));
}

TEST(SuffixIndex, TakesTheLatestOfEqualOnes) {
  SuffixIndex index;
  index.append(std::vector<TokenId>{1, 2, 5, 1, 2, 6, 1, 2});
  EXPECT_EQ(index.longest_match().length, 2);
  EXPECT_EQ(draft_of(index, 1), (std::vector<TokenId>{6}));
}

TEST(SuffixIndex, OneTokenIsNoMatch) {
  SuffixIndex index;
  EXPECT_EQ(index.longest_match().length, 0);
  index.append(std::vector<TokenId>{1, 2, 3, 1});
  EXPECT_EQ(index.longest_match().length, 0);
}

TEST(SuffixIndex, ATextThatRepeatsItselfGoesOnSo) {
  SuffixIndex index;
  index.append(std::vector<TokenId>{8, 1, 2, 3, 1, 2, 3});
  EXPECT_EQ(draft_of(index, 7), (std::vector<TokenId>{1, 2, 3, 1, 2, 3, 1}));
}

TEST(SuffixIndex, IsBruteForceOnRandomTexts) {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    std::vector<TokenId> text(3 + random() % 40);
    for (TokenId& token : text) token = static_cast<TokenId>(random() % 4);
    SuffixIndex index;
    for (const TokenId token : text) index.append({&token, 1});
    std::int32_t longest = 0;
    for (std::size_t end = 1; end + 1 < text.size(); ++end) {
      std::int32_t length = 0;
      while (static_cast<std::size_t>(length) <= end &&
             text[end - static_cast<std::size_t>(length)] ==
                 text[text.size() - 1 - static_cast<std::size_t>(length)]) {
        ++length;
      }
      longest = std::max(longest, length);
    }
    EXPECT_EQ(index.longest_match().length, longest >= 2 ? longest : 0);
  }
}

TEST(SuffixIndex, KeepsTheNewestTokens) {
  SuffixIndex index;
  std::vector<TokenId> text(SuffixIndex::kMaxTokens + 100);
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<TokenId>(i);
  index.append(text);
  index.append(
      std::vector<TokenId>{static_cast<TokenId>(text.size() - 50), static_cast<TokenId>(text.size() - 49)});
  EXPECT_EQ(index.longest_match().length, 2);
  EXPECT_EQ(draft_of(index, 1), (std::vector<TokenId>{static_cast<TokenId>(text.size() - 48)}));
  index.append(std::vector<TokenId>{5, 6});
  EXPECT_EQ(index.longest_match().length, 0) << "the oldest are forgotten";
}

}  // namespace
}  // namespace kvasir::spec::suffix_index_test
