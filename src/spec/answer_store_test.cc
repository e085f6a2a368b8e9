#include "spec/answer_store.h"

#include <gtest/gtest.h>

namespace kvasir::spec::answer_store_test {
namespace {

using Tokens = std::vector<TokenId>;

Tokens guess(const KeptAnswers& answers, const Tokens& text, std::size_t num_tokens = 8) {
  Tokens draft;
  const SuffixIndex::Match match = answers.longest_match(text);
  if (match.length > 0) answers.continue_match(match, num_tokens, draft);
  return draft;
}

TEST(KeptAnswers, GoOnAsAnEarlierAnswerDid) {
  KeptAnswers answers;
  answers.add(Tokens{1, 2, 3, 4, 5, 6});
  answers.add(Tokens{9, 2, 3, 7, 8});
  EXPECT_EQ(guess(answers, {50, 1, 2, 3}), (Tokens{4, 5, 6})) << "the longer match";
  EXPECT_EQ(guess(answers, {50, 2, 3}), (Tokens{7, 8})) << "the later of equals";
  EXPECT_EQ(guess(answers, {1, 2, 3}, 2), (Tokens{4, 5}));
  EXPECT_EQ(guess(answers, {5, 6}), Tokens{}) << "nothing comes behind an end";
  EXPECT_EQ(guess(answers, {6, 9}), Tokens{}) << "two answers are no text";
  EXPECT_EQ(guess(answers, {3}), Tokens{});
}

TEST(KeptAnswers, KeepOneOfEquals) {
  KeptAnswers answers;
  Tokens answer;
  for (TokenId token = 1; token < 200; ++token) answer.push_back(token);
  for (int i = 0; i < 1000; ++i) answers.add(answer);
  answers.add(Tokens{300, 301, 302});
  EXPECT_EQ(guess(answers, {1, 2, 3}, 2), (Tokens{4, 5})) << "one of 1,000, so it has not left";
  EXPECT_EQ(guess(answers, {300, 301}), Tokens{302});
}

TEST(KeptAnswers, TheOldestLeave) {
  KeptAnswers answers;
  for (TokenId i = 0; i < 40'000; i += 4) answers.add(Tokens{i, i + 1, i + 2, i + 3});
  EXPECT_EQ(guess(answers, {0, 1}), Tokens{});
  EXPECT_EQ(guess(answers, {39'996, 39'997}), (Tokens{39'998, 39'999}));
}

TEST(AnswerStore, NamespacesKnowNothingOfEachOther) {
  AnswerStore store;
  store.open("one")->add(Tokens{1, 2, 3});
  EXPECT_EQ(guess(*store.open("one"), {1, 2}), Tokens{3});
  EXPECT_EQ(guess(*store.open("two"), {1, 2}), Tokens{});
}

TEST(AnswerStore, TheNamespaceThatWasOpenedLongestAgoLeaves) {
  AnswerStore store;
  const auto first = store.open("0");
  first->add(Tokens{1, 2, 3});
  store.open("kept")->add(Tokens{1, 2, 3});
  for (std::size_t i = 1; i < AnswerStore::kMaxNamespaces; ++i) {
    store.open(std::to_string(i));
    store.open("kept");
  }
  EXPECT_EQ(guess(*first, {1, 2}), Tokens{3}) << "a sequence that has it goes on";
  EXPECT_EQ(guess(*store.open("kept"), {1, 2}), Tokens{3});
  EXPECT_EQ(guess(*store.open("0"), {1, 2}), Tokens{});
}

}  // namespace
}  // namespace kvasir::spec::answer_store_test
