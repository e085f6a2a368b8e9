#include "server/api/search_end.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace kvasir::server::search_end_test {
namespace {

constexpr auto kNumber = search::AnswerForm::kNumber;

// The candidate gets so many tokens and ends with the text.
bool end(api::SearchEnd& search, std::size_t choice, std::int32_t num_tokens, const std::string& text) {
  search.add(choice, num_tokens);
  return search.end(choice, text);
}

TEST(SearchEnd, WithoutLimitsAndVotesItIsCompleteAtTheEnd) {
  api::SearchEnd search(1, 2, {}, 0);
  for (const std::size_t choice : {0u, 1u}) {
    EXPECT_FALSE(search.has_ended(0));
    EXPECT_TRUE(end(search, choice, 5, "text"));
    EXPECT_TRUE(search.counts(choice));
  }
  EXPECT_EQ(search.ended_by(), "complete");
}

TEST(SearchEnd, SaysWhoseTokensWereUsedUp) {
  api::SearchEnd search(1, 2, {}, 8);
  end(search, 0, 7, "text");
  EXPECT_EQ(search.ended_by(), "complete");
  end(search, 1, 8, "a longer text");
  EXPECT_EQ(search.ended_by(), "max_total_tokens");
}

TEST(SearchEnd, WhenTheTimeIsUpThoseCountThatHaveEnded) {
  api::SearchEnd search(2, 2, {}, 0);
  for (const std::size_t choice : {0u, 2u, 3u}) end(search, choice, 5, "text");
  search.add(1, 3);
  search.end_for_time();
  EXPECT_TRUE(search.has_ended(0));
  EXPECT_FALSE(search.has_ended(1)) << "it is complete";
  EXPECT_FALSE(search.end(1, "late"));
  EXPECT_TRUE(search.counts(0));
  EXPECT_FALSE(search.counts(1));
  EXPECT_EQ(search.ended_by(), "max_ms");
}

TEST(SearchEnd, AVoteEndsWhenTheRestCannotChangeIt) {
  api::SearchEnd search(1, 5, kNumber, 0);
  search.add(4, 10);  // it goes on
  end(search, 0, 4, "it is 4");
  end(search, 1, 5, "no idea");
  end(search, 2, 6, "4");
  EXPECT_FALSE(search.has_ended(0)) << "two are left";
  end(search, 3, 7, "so 4.0");
  EXPECT_TRUE(search.has_ended(0));
  EXPECT_FALSE(end(search, 4, 1, "5"));
  EXPECT_FALSE(search.counts(4));
  EXPECT_EQ(search.ended_by(), "decided");
}

// 16 candidates of which four fifths say the same: half of them are enough.
TEST(SearchEnd, AVoteWithALeaderNeedsHalf) {
  api::SearchEnd search(1, 16, kNumber, 0);
  for (std::size_t choice = 0; choice < 16; ++choice) search.add(choice, 3);
  std::size_t num_ended = 0;
  for (; num_ended < 16 && !search.has_ended(0); ++num_ended) search.end(num_ended, num_ended % 5 == 1 ? std::to_string(100 + num_ended) : "7");
  EXPECT_LE(num_ended, 8u);
  EXPECT_EQ(search.ended_by(), "decided");
}

// One that has few seats ends its first answers before the last ones begin.
TEST(SearchEnd, TheOrderOfTheEndsDoesNotMatter) {
  const std::vector<std::int32_t> lengths = {9, 3, 5, 3, 7, 4};
  const std::vector<std::string> texts = {"2", "1", "1", "1", "2", "1"};
  std::vector<std::size_t> order = {0, 1, 2, 3, 4, 5};
  do {
    api::SearchEnd search(1, 6, kNumber, 0);
    for (const std::size_t choice : order) end(search, choice, lengths[choice], texts[choice]);
    for (std::size_t choice = 0; choice < 6; ++choice) {
      EXPECT_EQ(search.counts(choice), lengths[choice] <= 5) << "four of six say 1";
    }
  } while (std::ranges::next_permutation(order).found);
}

TEST(SearchEnd, EachPromptHasAVoteOfItsOwn) {
  api::SearchEnd search(2, 2, search::AnswerForm::kText, 0);
  end(search, 2, 3, "b");
  end(search, 3, 3, "b");
  end(search, 0, 3, "a");
  EXPECT_FALSE(search.has_ended(0));
  EXPECT_EQ(search.ended_by(), "complete");
}

}  // namespace
}  // namespace kvasir::server::search_end_test
