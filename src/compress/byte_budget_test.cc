#include "compress/byte_budget.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <vector>

namespace kvasir::compress::byte_budget_test {
namespace {

using Tensors = std::vector<std::vector<TypeOption>>;

double loss_of(const Tensors& tensors, const std::vector<std::size_t>& choice) {
  double loss = 0.0;
  for (std::size_t i = 0; i < tensors.size(); ++i) loss += tensors[i][choice[i]].loss;
  return loss;
}

std::int64_t bytes_of(const Tensors& tensors, const std::vector<std::size_t>& choice) {
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) bytes += tensors[i][choice[i]].num_bytes;
  return bytes;
}

// Of all combinations.
double least_loss(const Tensors& tensors, std::int64_t budget) {
  double least = std::numeric_limits<double>::infinity();
  std::vector<std::size_t> choice(tensors.size(), 0);
  while (true) {
    if (bytes_of(tensors, choice) <= budget) least = std::min(least, loss_of(tensors, choice));
    std::size_t i = 0;
    while (i < choice.size() && ++choice[i] == tensors[i].size()) choice[i++] = 0;
    if (i == choice.size()) return least;
  }
}

// Larger options lose less, each to its own degree.
Tensors random_tensors(std::uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> uniform(0.1, 1.0);
  Tensors tensors(7);
  for (auto& options : tensors) {
    std::int64_t bytes = 10 + static_cast<std::int64_t>(random() % 40);
    double loss = 10.0 * uniform(random);
    for (int i = 0; i < 4; ++i) {
      options.push_back({.num_bytes = bytes, .loss = loss});
      bytes += 5 + static_cast<std::int64_t>(random() % 30);
      loss *= 0.5 * uniform(random);
    }
  }
  return tensors;
}

TEST(ByteBudget, IsNearTheBestAndWithinTheBytes) {
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    const Tensors tensors = random_tensors(seed);
    const std::int64_t smallest = bytes_of(tensors, std::vector<std::size_t>(7, 0)), largest = bytes_of(tensors, std::vector<std::size_t>(7, 3));
    double found_sum = 0.0, best_sum = 0.0;
    for (int step = 0; step <= 10; ++step) {
      const std::int64_t budget = smallest + (largest - smallest) * step / 10;
      const auto choice = choose_within(tensors, budget);
      ASSERT_TRUE(choice);
      EXPECT_LE(bytes_of(tensors, *choice), budget);
      found_sum += loss_of(tensors, *choice);
      best_sum += least_loss(tensors, budget);
    }
    EXPECT_LT(found_sum, 1.1 * best_sum) << seed;
  }
}

TEST(ByteBudget, SaysWhereNothingFits) {
  const Tensors tensors = random_tensors(1);
  EXPECT_FALSE(choose_within(tensors, 5));
}

TEST(ByteBudget, TakesTheBestWhereAllFits) {
  const Tensors tensors = random_tensors(2);
  EXPECT_EQ(*choose_within(tensors, 1 << 20), std::vector<std::size_t>(7, 3));
}

}  // namespace
}  // namespace kvasir::compress::byte_budget_test
