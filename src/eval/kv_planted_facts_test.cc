#include "eval/kv_planted_facts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "text/testing/synthetic_vocab.h"

namespace kvasir::eval::kv_planted_facts_test {
namespace {

constexpr std::size_t kTextTokens = 3000;

std::string planted(std::uint64_t seed) {
  const auto tokenizer = text::Tokenizer::create(text::byte_level_vocab({{"e", "r"}})).value();
  const std::vector<TokenId> tokens = plant_facts(*tokenizer, std::vector<TokenId>(kTextTokens, TokenId{'-'}), seed);
  EXPECT_EQ(tokens.size(), kTextTokens);
  std::string words;
  for (const TokenId id : tokens) words += tokenizer->decode_token(id);
  return words;
}

TEST(PlantedFacts, EachAnswerStandsInTheTextBeforeItsQuestion) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const std::string words = planted(seed);
    EXPECT_EQ(std::ranges::count(words, '?'), 12) << "one for each person";
    for (std::size_t mark = words.find('?'); mark != std::string::npos; mark = words.find('?', mark + 1)) {
      const std::size_t end = words.find('.', mark), begin = words.rfind(' ', end) + 1;
      const std::string answer = words.substr(begin, end - begin);
      ASSERT_GE(answer.size(), 3u) << words.substr(mark, 80);
      const std::size_t fact = words.find(answer + '.');
      EXPECT_LT(fact, words.rfind("\n\n", mark)) << answer;
    }
  }
}

TEST(PlantedFacts, ASeedDrawsThem) {
  EXPECT_EQ(planted(3), planted(3));
  EXPECT_NE(planted(3), planted(4));
}

TEST(PlantedFacts, AShortTextStaysAsItIs) {
  const auto tokenizer = text::Tokenizer::create(text::byte_level_vocab({{"e", "r"}})).value();
  for (const std::size_t size : {0u, 1u, 100u, 170u}) {
    const std::vector<TokenId> text(size, TokenId{'-'});
    EXPECT_EQ(plant_facts(*tokenizer, text, 1).size(), size);
  }
}

}  // namespace
}  // namespace kvasir::eval::kv_planted_facts_test
