#include "spec/ngram_table.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "spec/ngram_counts.h"
#include "spec/ngram_training.h"

namespace kvasir::spec::ngram_table_test {
namespace {

std::uint64_t hash(std::vector<TokenId> context) { return NgramTable::hash_of(context); }

TEST(NgramTable, FindsWhatWasPutIn) {
  std::vector<NgramTable::Entry> entries;
  for (TokenId i = 0; i < 5000; ++i) entries.push_back({hash({i, i + 1}), {.token = i + 7, .chance = 0.5}});
  const NgramTable table = NgramTable::of_entries(2, entries);
  std::int32_t num_found = 0;
  for (TokenId i = 0; i < 5000; ++i) {
    const NgramTable::Guess guess = table.next(std::vector<TokenId>{99, i, i + 1});
    if (guess.token != i + 7) continue;
    ++num_found;
    EXPECT_NEAR(guess.chance, 0.5, 1.0 / 255);
  }
  EXPECT_EQ(num_found, 5000);
  for (TokenId i = 0; i < 5000; ++i) EXPECT_EQ(table.next(std::vector<TokenId>{i, i + 2}).token, kNoToken);
}

TEST(NgramTable, TheSurestContextCounts) {
  const std::vector<NgramTable::Entry> entries = {{hash({1}), {.token = 10, .chance = 0.6}},
                                                  {hash({2, 1}), {.token = 20, .chance = 0.4}},
                                                  {hash({3, 2, 1}), {.token = 30, .chance = 0.9}}};
  const NgramTable table = NgramTable::of_entries(3, entries);
  EXPECT_EQ(table.next(std::vector<TokenId>{2, 1}).token, 10);
  EXPECT_EQ(table.next(std::vector<TokenId>{3, 2, 1}).token, 30);
  EXPECT_EQ(table.next(std::vector<TokenId>{4}).token, kNoToken);
  EXPECT_EQ(table.next({}).token, kNoToken);
}

TEST(NgramTable, ItsWordsMakeTheSameTable) {
  const std::vector<NgramTable::Entry> entries = {{hash({1}), {.token = 10, .chance = 0.6}}};
  const NgramTable table = NgramTable::of_entries(1, entries);
  const auto again = NgramTable::of_words(1, {table.words().begin(), table.words().end()}, 11);
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(again->next(std::vector<TokenId>{1}).token, 10);
}

TEST(NgramTable, WordsThatAreNoTableAreRefused) {
  const auto message = [](std::int32_t order, std::vector<std::uint32_t> words) {
    const auto table = NgramTable::of_words(order, std::move(words), 100);
    return table ? std::string() : table.error().message;
  };
  EXPECT_EQ(message(1, {0, 99 << 8 | 200}), "");
  EXPECT_EQ(message(1, {0, 100 << 8 | 200}), "token 100 of slot 0 is beyond the vocabulary of 100");
  EXPECT_EQ(message(9, {0, 0}), "contexts have 1 to 8 tokens, these have 9");
  EXPECT_EQ(message(1, {0, 0, 0}), "the table has 3 words, which are no pairs");
  EXPECT_EQ(message(1, {}), "the table has 0 words, which are no pairs");
}

TEST(NgramTable, AFullTableEndsItsLookups) {
  const auto table = NgramTable::of_words(1, std::vector<std::uint32_t>(200, 1 << 8 | 1), 100);
  ASSERT_TRUE(table.has_value());
  EXPECT_EQ(table->next(std::vector<TokenId>{5}).token, kNoToken);
}

TEST(NgramCounts, CountsGeneratedTokensAlone) {
  const std::vector<GeneratedText> texts = {{.tokens = {1, 2, 3, 1, 2, 4, 1, 2, 4}, .num_prompt_tokens = 3}};
  const NgramCounts counts(texts, 2);
  const NgramCounts::Context* const context = counts.find(hash({1, 2}));
  ASSERT_NE(context, nullptr);
  EXPECT_EQ(context->token, 4);
  EXPECT_EQ(context->num_times, 2);
  EXPECT_EQ(context->num_all, 2);
  EXPECT_EQ(context->shorter, hash({2}));
  EXPECT_EQ(counts.find(hash({7})), nullptr);
}

// Texts of a chain whose next token is the last one's double with a chance of 0.8.
std::vector<GeneratedText> chains(std::uint32_t seed, std::size_t num_texts) {
  std::mt19937 random(seed);
  std::vector<GeneratedText> texts(num_texts);
  for (GeneratedText& text : texts) {
    text.num_prompt_tokens = 1;
    text.tokens = {static_cast<TokenId>(random() % 101)};
    while (text.tokens.size() < 60) {
      const bool is_double = random() % 5 != 0;
      text.tokens.push_back(is_double ? text.tokens.back() * 2 % 101 : static_cast<TokenId>(random() % 101));
    }
  }
  return texts;
}

TEST(NgramTraining, LearnsAChainAndHowSureItIs) {
  const NgramTable table = train_ngram_table(chains(1, 400), 3);
  const NgramTable::Guess guess = table.next(std::vector<TokenId>{50});
  EXPECT_EQ(guess.token, 100);
  EXPECT_NEAR(guess.chance, 0.8, 0.05);
  const NgramScore score = score_ngram_table(table, chains(2, 50));
  ASSERT_EQ(score.acceptance.size(), NgramScore::kDepth);
  EXPECT_NEAR(score.acceptance[0], 0.8, 0.03);
  EXPECT_NEAR(score.acceptance[1], 0.64, 0.04);
  EXPECT_EQ(score.num_tokens, 50 * 59);
}

TEST(NgramTraining, LongContextsThatSayNoMoreAreLeftOut) {
  EXPECT_LT(train_ngram_table(chains(1, 400), 3).num_slots(), 1500U);
}

TEST(NgramTraining, OfNoTextsComesATableThatGuessesNothing) {
  const NgramTable table = train_ngram_table({}, 2);
  EXPECT_EQ(table.next(std::vector<TokenId>{1}).token, kNoToken);
  EXPECT_EQ(score_ngram_table(table, {}).acceptance[0], 0.0);
}

}  // namespace
}  // namespace kvasir::spec::ngram_table_test
