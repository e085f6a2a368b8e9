#include "spec/acceptance.h"

#include <algorithm>

namespace kvasir::spec {
namespace {

constexpr double kWeightOfPrior = 8.0;
constexpr double kFade = 0.9973;  // half of it is left after 256

// Measured on edits and chats of SmolLM2, for a start.
constexpr std::array<double, 8> kTypicalShares = {0.35, 0.45, 0.55, 0.65, 0.72, 0.8, 0.85, 0.9};

}  // namespace

// 2, 3, 4, 5-6, 7-9, 10-15, 16-31, 32 and more.
std::size_t Acceptance::bucket_of(std::int32_t match_length) {
  constexpr std::array<std::int32_t, 7> kEnds = {2, 3, 4, 6, 9, 15, 31};
  return static_cast<std::size_t>(std::ranges::lower_bound(kEnds, match_length) - kEnds.begin());
}

double Acceptance::estimate(std::int32_t match_length) const {
  const std::size_t bucket = bucket_of(match_length);
  const double typical = share_ > 0.0 ? share_ : kTypicalShares.at(bucket);
  const double prior = prior_ != nullptr ? prior_->estimate(match_length) : typical;
  const Counts& counts = counts_.at(bucket);
  return (counts.num_right + kWeightOfPrior * prior) / (counts.num_all + kWeightOfPrior);
}

void Acceptance::observe(std::int32_t match_length, bool is_right) {
  Counts& counts = counts_.at(bucket_of(match_length));
  counts.num_right = kFade * counts.num_right + (is_right ? 1.0 : 0.0);
  counts.num_all = kFade * counts.num_all + 1.0;
}

}  // namespace kvasir::spec
