#include "eval/search_tasks.h"

#include <gtest/gtest.h>

namespace kvasir::eval::search_tasks_test {
namespace {

TEST(SearchTasks, AreReadLineByLine) {
  const auto tasks = parse_search_tasks("{\"prompt\": \"2+2\", \"answer\": \"4\"}\n\n{\"prompt\": \"a\", \"answer\": \"B c\", \"check\": \"exact\"}\r\n");
  ASSERT_TRUE(tasks) << tasks.error().message;
  ASSERT_EQ(tasks->size(), 2u);
  EXPECT_TRUE(is_solved((*tasks)[0], "2 + 2 = 4"));
  EXPECT_FALSE(is_solved((*tasks)[0], "5"));
  EXPECT_TRUE(is_solved((*tasks)[1], "b  C."));
  EXPECT_TRUE(is_solved({.answer = "fo+", .check = AnswerCheck::kRegex}, "a fool"));
}

TEST(SearchTasks, FaultsNameTheLine) {
  for (const char* lines : {"{}", "\n[", "{\"prompt\": 1, \"answer\": \"\"}", "{\"prompt\": \"\", \"answer\": \"(\", \"check\": \"regex\"}",
                            "{\"prompt\": \"\", \"answer\": \"\", \"check\": \"maybe\"}", ""}) {
    const auto tasks = parse_search_tasks(lines);
    ASSERT_FALSE(tasks) << lines;
    EXPECT_EQ(tasks.error().kind, ErrorKind::kBadFile);
  }
}

// Wilson's interval of 8 of 10 is known.
TEST(SearchScore, HasWilsonsInterval) {
  const SearchScore score{.num_items = 10, .num_solved = 8};
  EXPECT_NEAR(score.solved_low(), 0.4902, 1e-3);
  EXPECT_NEAR(score.solved_high(), 0.9433, 1e-3);
}

}  // namespace
}  // namespace kvasir::eval::search_tasks_test
