#include "server/api/best_of.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace kvasir::server::best_of_test {
namespace {

RequestOutput output(std::vector<float> logprobs) {
  RequestOutput out;
  for (const float logprob : logprobs) {
    out.token_ids.push_back(1);
    out.logprobs.push_back({.chosen = {.token = 1, .logprob = logprob}, .top = {}});
  }
  return out;
}

std::vector<api::ChoiceResult> choices(const std::vector<std::string>& texts) {
  std::vector<api::ChoiceResult> all(texts.size());
  for (std::size_t i = 0; i < texts.size(); ++i) all[i].text = texts[i];
  return all;
}

TEST(BestOf, KeepsTheLikeliestByTheMean) {
  api::BestOf best_of(1, 3, 2);
  best_of.add(0, output({-1.0f, -1.0f}));
  best_of.add(1, output({-0.5f}));
  best_of.add(1, output({-0.7f}));  // in pieces
  best_of.add(2, output({-0.1f, -0.2f, -2.0f}));  // the least sum but one, and a mean between
  std::vector<api::ChoiceResult> all = choices({"a", "b", "c"});
  EXPECT_EQ(best_of.keep(all), 5);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].text, "b");
  EXPECT_EQ(all[1].text, "c");
}

TEST(BestOf, ChoosesForEachPromptAndKeepsItsScore) {
  api::BestOf best_of(2, 2, 1);
  for (const std::size_t choice : {0u, 3u}) best_of.add(choice, output({-2.0f}));
  for (const std::size_t choice : {1u, 2u}) best_of.add(choice, output({-1.0f}));
  std::vector<api::ChoiceResult> all = choices({"a", "b", "c", "d"});
  all[0].prompt_logprobs.emplace_back();  // at the first choice of a prompt
  EXPECT_EQ(best_of.keep(all), 2);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].text + all[1].text, "bc");
  EXPECT_EQ(all[0].prompt_logprobs.size(), 1u);
}

TEST(BestOf, PrefersTheFirstOfEqualOnesAndAnyTokenToNone) {
  api::BestOf best_of(1, 3, 2);
  best_of.add(1, output({-3.0f}));
  best_of.add(2, output({-3.0f}));
  std::vector<api::ChoiceResult> all = choices({"none", "a", "b"});
  best_of.keep(all);
  EXPECT_EQ(all[0].text + all[1].text, "ab");
}

TEST(BestOf, AVoteGivesWhatMostSay) {
  api::BestOf best_of(1, 4, 1, search::AnswerForm::kNumber);
  const float means[] = {-0.1f, -2.0f, -1.0f, -0.2f};
  const char* texts[] = {"it is 5", "so 7", "7.0", "no idea"};
  std::vector<api::ChoiceResult> all(4);
  for (std::size_t i = 0; i < 4; ++i) {
    best_of.add(i, output({means[i]}));
    all[i].text = texts[i];
  }
  best_of.keep(all);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].text, "7.0");  // the likelier one of the two that say so
}

TEST(BestOf, AVoteWithoutAnswersGivesTheLikeliest) {
  api::BestOf best_of(1, 2, 1, search::AnswerForm::kNumber);
  std::vector<api::ChoiceResult> all(2);
  best_of.add(0, output({-2.0f}));
  best_of.add(1, output({-1.0f}));
  all[0].text = "none";
  all[1].text = "nothing";
  best_of.keep(all);
  EXPECT_EQ(all[0].text, "nothing");
}

}  // namespace
}  // namespace kvasir::server::best_of_test
