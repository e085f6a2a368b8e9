#include "spec/speculator.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace kvasir::spec::speculator_test {
namespace {

constexpr SequenceId kOne{1}, kTwo{2};

void learn_times(Speculator& speculator, std::int32_t num_streams) {
  for (int i = 0; i < 3; ++i) speculator.observe_step(num_streams, 0, num_streams, 10.0);
}

std::shared_ptr<const NgramTable> learned(TokenId last, TokenId next, double chance) {
  const std::vector<NgramTable::Entry> entries = {
      {.context = NgramTable::hash_of(std::vector{last}), .guess = {.token = next, .chance = chance}}};
  return std::make_shared<const NgramTable>(NgramTable::of_entries(1, entries));
}

TEST(Speculator, GuessesWhatTheTextSaidBefore) {
  Speculator speculator({});
  speculator.begin(kOne, {.tokens = std::vector<TokenId>{1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4}});
  learn_times(speculator, 1);
  const auto drafts = speculator.propose(std::vector{kOne});
  ASSERT_EQ(drafts.size(), 1U);
  ASSERT_GE(drafts[0].token_ids.size(), 2U);
  EXPECT_EQ(drafts[0].token_ids[0], 5);
  EXPECT_EQ(drafts[0].token_ids[1], 6);
}

TEST(Speculator, GuessesNoMoreThanItMay) {
  for (const std::int32_t most : {1, 3}) {
    Speculator speculator({.max_guesses = most});
    std::vector<TokenId> tokens;
    for (int i = 0; i < 60; ++i) tokens.push_back(i % 6);
    speculator.begin(kOne, {.tokens = tokens});
    learn_times(speculator, 1);
    const auto drafts = speculator.propose(std::vector{kOne});
    ASSERT_EQ(drafts.size(), 1U);
    EXPECT_GE(drafts[0].token_ids.size(), 1U);
    EXPECT_LE(std::ssize(drafts[0].token_ids), most);
  }
}

TEST(Speculator, GuessesWhatTheClientSaysThatTheAnswerMayBe) {
  Speculator speculator({});
  const std::vector<TokenId> predicted = {20, 21, 22, 23, 24}, tokens = {1, 2, 3, 20, 21};
  speculator.begin(kOne, {.predicted = predicted, .tokens = tokens});
  learn_times(speculator, 1);
  const auto drafts = speculator.propose(std::vector{kOne});
  ASSERT_EQ(drafts.size(), 1U);
  EXPECT_EQ(drafts[0].token_ids[0], 22);
}

TEST(Speculator, GuessesWhatAnEarlierAnswerOfTheNamespaceSaid) {
  Speculator speculator({});
  const std::vector<TokenId> tokens = {1, 2, 3, 4, 50};
  speculator.begin(kOne, {.tokens = tokens, .num_prompt_tokens = 4, .answer_namespace = "a"});
  speculator.advance(kOne, std::vector<TokenId>{51, 52, 53}, 0, 0);
  speculator.end(kOne);
  learn_times(speculator, 1);
  const auto guesses_of = [&](std::optional<std::string_view> answer_namespace) {
    speculator.begin(kTwo, {.tokens = tokens, .num_prompt_tokens = 4, .answer_namespace = answer_namespace});
    learn_times(speculator, 1);
    const auto drafts = speculator.propose(std::vector{kTwo});
    std::vector<TokenId> guesses;
    if (!drafts.empty()) guesses.assign(drafts[0].token_ids.begin(), drafts[0].token_ids.end());
    speculator.end(kTwo);
    return guesses;
  };
  const std::vector<TokenId> guesses = guesses_of("a");
  ASSERT_FALSE(guesses.empty());
  EXPECT_EQ(guesses[0], 51);
  EXPECT_LE(guesses.size(), 3U);
  EXPECT_TRUE(guesses_of("b").empty());
  EXPECT_TRUE(guesses_of(std::nullopt).empty());
}

TEST(Speculator, GuessesFromWhatItMayUseAlone) {
  Speculator speculator({.uses_text = false, .heads = learned(4, 77, 0.8)});
  speculator.begin(kOne, {.tokens = std::vector<TokenId>{1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4}});
  learn_times(speculator, 1);
  const auto drafts = speculator.propose(std::vector{kOne});
  ASSERT_EQ(drafts.size(), 1U);
  EXPECT_EQ(drafts[0].token_ids[0], 77);
}

TEST(Speculator, GuessesNothingWithoutAMatchOrOfAnUnknownSequence) {
  Speculator speculator({});
  speculator.begin(kOne, {.tokens = std::vector<TokenId>{1, 2, 3, 4, 5}});
  learn_times(speculator, 2);
  EXPECT_TRUE(speculator.propose(std::vector{kOne, kTwo}).empty());
}

TEST(Speculator, AsksTheModelWhereTheTextSaysNothing) {
  Speculator speculator({.has_model = true});
  speculator.begin(kOne, {.tokens = std::vector<TokenId>{1, 2, 3, 4, 5}});
  learn_times(speculator, 1);
  speculator.observe_passes(1, 0.5);
  EXPECT_TRUE(speculator.propose(std::vector{kOne}).empty());
  const auto drafts = speculator.propose(std::vector{kOne}, /*may_ask_model=*/true);
  ASSERT_EQ(drafts.size(), 1U);
  EXPECT_TRUE(drafts[0].token_ids.empty());
  EXPECT_GT(drafts[0].num_wanted, 0);
  EXPECT_EQ(speculator.source_of(kOne, 0), Speculator::Source::kModel);
}

TEST(Speculator, ASureTextGoesBeforeTheModel) {
  Speculator speculator({.has_model = true});
  std::vector<TokenId> tokens(40);
  for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<TokenId>(i % 20);
  speculator.begin(kOne, {.tokens = tokens});
  learn_times(speculator, 1);
  const auto drafts = speculator.propose(std::vector{kOne}, /*may_ask_model=*/true);
  ASSERT_EQ(drafts.size(), 1U);
  EXPECT_EQ(drafts[0].num_wanted, 0);
  EXPECT_EQ(drafts[0].token_ids[0], 0);
}

TEST(Speculator, AModelThatIsSeldomRightIsAskedSeldom) {
  Speculator speculator({.has_model = true});
  int num_asked_late = 0;
  TokenId fresh = 100;
  for (int sequence = 0; sequence < 40; ++sequence) {
    speculator.begin(kOne, {.tokens = std::vector<TokenId>{1, 2, 3, 4, 5}});
    learn_times(speculator, 1);
    for (int i = 0; i < 20; ++i) {
      const auto drafts = speculator.propose(std::vector{kOne}, /*may_ask_model=*/true);
      const std::int32_t num_guesses = drafts.empty() ? 0 : drafts[0].num_wanted;
      if (sequence >= 20) num_asked_late += num_guesses > 0 ? 1 : 0;
      speculator.advance(kOne, std::vector{++fresh}, num_guesses, 0);
    }
    speculator.end(kOne);
  }
  EXPECT_GT(num_asked_late, 0) << "it has another chance now and then";
  EXPECT_LT(num_asked_late, 60);
}

TEST(Speculator, ATextWhoseGuessesAreWrongIsGuessedNoMore) {
  Speculator speculator({});
  std::vector<TokenId> text = {1, 2, 3, 1, 2};
  speculator.begin(kOne, {.tokens = text});
  learn_times(speculator, 1);
  TokenId fresh = 100;
  int num_guessed_late = 0;
  for (int i = 0; i < 400; ++i) {
    const auto drafts = speculator.propose(std::vector{kOne});
    const auto num_guesses = drafts.empty() ? 0 : static_cast<std::int32_t>(drafts[0].token_ids.size());
    if (i > 200) num_guessed_late += num_guesses;
    // Two tokens that match, then one that never came before.
    const TokenId next = i % 3 == 2 ? ++fresh : static_cast<TokenId>(1 + i % 3);
    speculator.advance(kOne, std::vector{next}, num_guesses, 0);
    speculator.observe_step(1, num_guesses, 1, 10.0 + num_guesses);
  }
  EXPECT_LT(num_guessed_late, 60);
}

TEST(Speculator, GuessesWhatWasLearnedBeforehand) {
  Speculator speculator({.heads = learned(5, 77, 0.8)});
  speculator.begin(kOne, {.tokens = std::vector<TokenId>{1, 2, 3, 4, 5}});
  learn_times(speculator, 1);
  const auto drafts = speculator.propose(std::vector{kOne});
  ASSERT_EQ(drafts.size(), 1U);
  ASSERT_EQ(drafts[0].token_ids.size(), 1U) << "nothing is known behind it";
  EXPECT_EQ(drafts[0].token_ids[0], 77);
  EXPECT_EQ(speculator.source_of(kOne, 0), Speculator::Source::kHeads);
}

TEST(Speculator, LeavesTheTextWhereWhatWasLearnedIsSurer) {
  Speculator speculator({.heads = learned(5, 77, 0.99)});
  speculator.begin(kOne, {.tokens = std::vector<TokenId>{1, 2, 3, 4, 5, 6, 7, 1, 2, 3, 4}});
  learn_times(speculator, 1);
  const auto drafts = speculator.propose(std::vector{kOne});
  ASSERT_EQ(drafts.size(), 1U);
  ASSERT_EQ(drafts[0].token_ids.size(), 2U);
  EXPECT_EQ(drafts[0].token_ids[0], 5);
  EXPECT_EQ(drafts[0].token_ids[1], 77);
  EXPECT_EQ(speculator.source_of(kOne, 0), Speculator::Source::kText);
  EXPECT_EQ(speculator.source_of(kOne, 1), Speculator::Source::kHeads);
}

TEST(Speculator, WhatWasLearnedAndIsWrongIsGuessedNoMore) {
  Speculator speculator({.heads = learned(5, 77, 0.8)});
  speculator.begin(kOne, {.tokens = std::vector<TokenId>{1, 2, 3, 4, 5}});
  learn_times(speculator, 1);
  int num_guessed_late = 0;
  for (TokenId i = 0; i < 400; ++i) {
    const auto drafts = speculator.propose(std::vector{kOne});
    const auto num_guesses = drafts.empty() ? 0 : static_cast<std::int32_t>(drafts[0].token_ids.size());
    if (i > 200) num_guessed_late += num_guesses;
    speculator.advance(kOne, std::vector<TokenId>{100 + i, 5}, num_guesses, 0);
    speculator.observe_step(1, num_guesses, 1, 10.0 + num_guesses);
  }
  EXPECT_LT(num_guessed_late, 20);
}

TEST(Speculator, AnEndedSequenceIsForgotten) {
  Speculator speculator({});
  speculator.begin(kOne, {.tokens = std::vector<TokenId>{1, 2, 3, 1, 2}});
  EXPECT_TRUE(speculator.knows(kOne));
  speculator.end(kOne);
  EXPECT_FALSE(speculator.knows(kOne));
}

}  // namespace
}  // namespace kvasir::spec::speculator_test
