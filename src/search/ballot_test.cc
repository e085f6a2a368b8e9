#include "search/ballot.h"

#include <gtest/gtest.h>

namespace kvasir::search::ballot_test {
namespace {

TEST(Ballot, TheMostVotesWinAndTheFirstOfEquals) {
  Ballot ballot;
  for (const char* answer : {"b", "a", "a", "b", "c"}) ballot.add(answer);
  EXPECT_EQ(ballot.leader(), "b");
  ballot.add("a");
  EXPECT_EQ(ballot.leader(), "a");
  ballot.add("c", 5.0);
  EXPECT_EQ(ballot.leader(), "c");
}

TEST(Ballot, EndsWhenTheRestCannotChangeIt) {
  Ballot ballot;
  for (int i = 0; i < 3; ++i) ballot.add("a");
  ballot.add("b");
  EXPECT_TRUE(ballot.is_decided(1));
  EXPECT_FALSE(ballot.is_decided(12));
  EXPECT_TRUE(ballot.is_decided(0));
}

// Five against none: 1 - 1 / 64.
TEST(Ballot, EndsWhenAChangeIsImprobable) {
  EXPECT_NEAR(incomplete_beta_of_half(6, 1), 1.0 / 64.0, 1e-12);
  EXPECT_NEAR(incomplete_beta_of_half(1, 1), 0.5, 1e-12);
  EXPECT_NEAR(incomplete_beta_of_half(3, 3), 0.5, 1e-12);
  Ballot ballot;
  for (int i = 0; i < 3; ++i) ballot.add("a");
  EXPECT_FALSE(ballot.is_decided(13));  // 1 - 1 / 16
  ballot.add("a");
  EXPECT_TRUE(ballot.is_decided(12));
}

TEST(Ballot, InvalidVotesAreVotes) {
  Ballot ballot;
  ballot.add_invalid();
  EXPECT_EQ(ballot.num_votes(), 1u);
  EXPECT_EQ(ballot.leader(), "");
  EXPECT_FALSE(ballot.is_decided(1));
}

}  // namespace
}  // namespace kvasir::search::ballot_test
