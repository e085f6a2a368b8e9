#include "sched/victim.h"

#include <gtest/gtest.h>

#include <vector>

namespace kvasir::sched::victim_test {
namespace {

constexpr SequenceId kNobody{-1};

TEST(Victim, IsTheCheapestThatFreesEnough) {
  Sequence a{.id = SequenceId{1}, .num_computed_tokens = 500};
  Sequence b{.id = SequenceId{2}, .num_computed_tokens = 80};
  Sequence c{.id = SequenceId{3}, .num_computed_tokens = 300};
  const std::vector<Sequence*> all = {&a, &b, &c};
  EXPECT_EQ(&choose_victim(all, 16, kNobody), &b);
  EXPECT_EQ(&choose_victim(all, 100, kNobody), &c);
  EXPECT_EQ(&choose_victim(all, 1000, kNobody), &a);
}

TEST(Victim, IsOfTheLastClass) {
  Sequence a{.id = SequenceId{1}, .running_class = 0, .num_computed_tokens = 100};
  Sequence b{.id = SequenceId{2}, .running_class = 1, .num_computed_tokens = 500};
  EXPECT_EQ(&choose_victim(std::vector<Sequence*>{&a, &b}, 16, kNobody), &b);
}

TEST(Victim, IsNotTheSameTwiceInARowUnlessAlone) {
  Sequence a{.id = SequenceId{1}, .num_computed_tokens = 100};
  Sequence b{.id = SequenceId{2}, .num_computed_tokens = 50};
  EXPECT_EQ(&choose_victim(std::vector<Sequence*>{&a, &b}, 16, b.id), &a);
  EXPECT_EQ(&choose_victim(std::vector<Sequence*>{&b}, 16, b.id), &b);
}

}  // namespace
}  // namespace kvasir::sched::victim_test
