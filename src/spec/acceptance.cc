#include "spec/acceptance.h"

#include <algorithm>

namespace kvasir::spec {
namespace {

constexpr double kWeightOfPrior = 8.0;
constexpr double kFade = 0.9973;  // half of it is left after 256

// Measured on edits and chats of SmolLM2, for a start.
constexpr std::array<double, Grade::kNumBuckets> kTypicalShares = {0.35, 0.45, 0.55, 0.65, 0.72, 0.8, 0.85, 0.9};

}  // namespace

// 2, 3, 4, 5-6, 7-9, 10-15, 16-31, 32 and more.
Grade Grade::of_match(std::int32_t num_matching) {
  constexpr std::array<std::int32_t, kNumBuckets - 1> kEnds = {2, 3, 4, 6, 9, 15, 31};
  const auto bucket = static_cast<std::size_t>(std::ranges::lower_bound(kEnds, num_matching) - kEnds.begin());
  return {.bucket = bucket, .typical = kTypicalShares.at(bucket)};
}

Grade Grade::of_chance(double chance) {
  const auto bucket = static_cast<std::size_t>(chance * kNumBuckets);
  return {.bucket = std::min(bucket, kNumBuckets - 1), .typical = chance};
}

double Acceptance::estimate(Grade grade) const {
  const double prior = prior_ != nullptr ? prior_->estimate(grade) : grade.typical;
  const Counts& counts = counts_.at(grade.bucket);
  return (counts.num_right + kWeightOfPrior * prior) / (counts.num_all + kWeightOfPrior);
}

void Acceptance::observe(Grade grade, bool is_right) {
  Counts& counts = counts_.at(grade.bucket);
  counts.num_right = kFade * counts.num_right + (is_right ? 1.0 : 0.0);
  counts.num_all = kFade * counts.num_all + 1.0;
}

}  // namespace kvasir::spec
