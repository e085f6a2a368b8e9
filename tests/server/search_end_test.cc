#include "server/api/search_end.h"

#include <gtest/gtest.h>

#include <string>

namespace kvasir::server::search_end_test {
namespace {

using std::chrono::milliseconds;

TEST(SearchEnd, WithoutLimitsAndVotesItIsCompleteAtTheEnd) {
  api::SearchEnd end({}, 1, 2, {});
  end.add(100);
  for (const std::size_t choice : {0u, 1u}) {
    EXPECT_EQ(end.reason(0, milliseconds(1000000)), "");
    end.end(choice, "text");
  }
  EXPECT_EQ(end.ended_by(), "complete");
}

// Another token of each would be too many.
TEST(SearchEnd, TokensOfAllCandidatesCount) {
  api::SearchEnd end({.max_total_tokens = 10}, 2, 2, {});
  for (int i = 0; i < 6; ++i) end.add(1);
  EXPECT_EQ(end.reason(0, milliseconds(0)), "") << "6 and 4 more";
  end.add(1);
  EXPECT_EQ(end.reason(1, milliseconds(0)), "max_total_tokens") << "7 and 4 more";
  EXPECT_TRUE(end.has_ended(1));
  EXPECT_FALSE(end.has_ended(0));
  end.end(0, "text");
  EXPECT_EQ(end.reason(0, milliseconds(0)), "") << "7 and 3 more";
  EXPECT_EQ(end.reason(1, milliseconds(0)), "max_total_tokens") << "once and for all";
  EXPECT_EQ(end.ended_by(), "max_total_tokens");
}

TEST(SearchEnd, TimeIsUp) {
  api::SearchEnd end({.max_ms = 50}, 1, 2, {});
  EXPECT_EQ(end.reason(0, milliseconds(49)), "");
  EXPECT_EQ(end.reason(0, milliseconds(50)), "max_ms");
}

TEST(SearchEnd, AVoteEndsWhenTheRestCannotChangeIt) {
  api::SearchEnd end({}, 1, 5, search::AnswerForm::kNumber);
  end.end(0, "it is 4");
  end.end(1, "no idea");
  end.end(2, "4");
  EXPECT_EQ(end.reason(0, milliseconds(0)), "") << "two are left";
  end.end(3, "so 4.0");
  EXPECT_EQ(end.reason(0, milliseconds(0)), "decided");
}

// Of 16 candidates four fifths say the same: half of them are enough.
TEST(SearchEnd, AVoteWithALeaderNeedsHalf) {
  api::SearchEnd end({}, 1, 16, search::AnswerForm::kNumber);
  int num_ended = 0;
  for (; num_ended < 16 && end.reason(0, milliseconds(0)).empty(); ++num_ended) {
    end.end(static_cast<std::size_t>(num_ended), num_ended % 5 == 1 ? std::to_string(100 + num_ended) : "7");
  }
  EXPECT_LE(num_ended, 8);
  EXPECT_EQ(end.ended_by(), "decided");
}

TEST(SearchEnd, EachPromptHasAVoteOfItsOwn) {
  api::SearchEnd end({}, 2, 2, search::AnswerForm::kText);
  end.end(2, "b");
  end.end(3, "b");
  EXPECT_EQ(end.reason(0, milliseconds(0)), "");
  end.end(0, "a");
  EXPECT_EQ(end.reason(0, milliseconds(0)), "") << "the other one may say so too, and wins no tie";
}

}  // namespace
}  // namespace kvasir::server::search_end_test
