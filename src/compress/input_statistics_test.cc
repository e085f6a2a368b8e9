#include "compress/input_statistics.h"

#include <gtest/gtest.h>

#include <vector>

namespace kvasir::compress::input_statistics_test {
namespace {

TEST(InputStatistics, HasMeanSquaresOfEachExpertButOfAllForRareOnes) {
  ThreadPool pool(1);
  InputStatistics statistics({}, pool);
  statistics.observe_expert("down", 2, 3, std::vector<float>{1, 2}, 2);
  statistics.pause();
  statistics.observe_expert("down", 2, 3, std::vector<float>{100, 100}, 2);
  statistics.go_on();
  statistics.observe_expert("down", 0, 3, std::vector<float>{5, 3}, 2);
  for (int i = 0; i < 600; ++i) statistics.observe_expert("down", 2, 3, std::vector<float>{1, 4, 1, 4}, 2);
  statistics.finish();
  const io::Imatrix imatrix = statistics.imatrix();
  const std::vector<float>& means = imatrix.mean_squares.at("down");
  ASSERT_EQ(means.size(), 6u);
  EXPECT_EQ(imatrix.counts.at("down"), (std::vector<float>{1, 1, 1201}));
  EXPECT_FLOAT_EQ(means[4], 1.0f);
  EXPECT_FLOAT_EQ(means[5], (4.0f + 1200.0f * 16.0f) / 1201.0f);
  for (const std::size_t rare : {0u, 2u}) {
    EXPECT_FLOAT_EQ(means[rare], (1.0f + 25.0f + 1200.0f) / 1202.0f);
    EXPECT_FLOAT_EQ(means[rare + 1], (4.0f + 9.0f + 1200.0f * 16.0f) / 1202.0f);
  }
  EXPECT_EQ(statistics.products_of("down"), nullptr);
}

TEST(InputStatistics, SharesTheSumsOfMatricesWithOneInput) {
  ThreadPool pool(1);
  InputStatistics statistics({"k"}, pool);
  const std::string_view names[] = {"q", "k"};
  statistics.observe(names, std::vector<float>{2, 0, 4, 1}, 2);
  statistics.finish();
  EXPECT_EQ(statistics.input_of("q"), statistics.input_of("k"));
  EXPECT_EQ(statistics.input_of("other"), -1);
  ASSERT_NE(statistics.products_of("q"), nullptr);
  EXPECT_NEAR(statistics.products_of("q")->at(0, 1), 4.0, 1e-2);
  EXPECT_NEAR(statistics.imatrix().mean_squares.at("k")[0], 10.0f, 1e-2);
}

}  // namespace
}  // namespace kvasir::compress::input_statistics_test
