#include "spec/row_costs.h"

#include <algorithm>

namespace kvasir::spec {
namespace {

// SmolLM2 in Q4_1, the rows of one sequence, over the time of one row.
constexpr std::array<double, 33> kTypicalTimes = {
    0.95, 1.0,  1.06, 1.17, 1.21, 1.30, 1.34, 1.40, 1.47, 1.71, 1.73, 1.75, 1.76, 1.86, 1.95, 2.03, 2.11,
    2.37, 2.47, 2.57, 2.68, 2.78, 2.88, 2.98, 3.09, 3.19, 3.29, 3.40, 3.50, 3.60, 3.70, 3.80, 3.90};
constexpr double kExpectedWeight = 4.0;
constexpr double kMostWeight = 24.0;
constexpr std::int32_t kStepsOfBase = 3;  // that the time without guesses follows; texts grow meanwhile
constexpr std::int32_t kLeastStepsOfBase = 2;

}  // namespace

double RowCosts::ratio(std::int32_t num_streams, std::int32_t num_guesses) const {
  const auto guesses = static_cast<std::size_t>(num_guesses);
  const std::size_t streams = index_of(num_streams);
  if (num_guesses == 0) return 1.0;
  // A row more is never cheaper than what was learned of fewer.
  double least = 1.0;
  double scale = 0.0,
         scale_weight = kExpectedWeight;  // how this machine's costs differ from the typical ones
  for (std::size_t i = 1; i <= kMaxGuesses; ++i) {
    const Learned& learned = learned_[streams][i];
    if (learned.weight == 0.0) continue;
    const double typical = kTypicalTimes[streams + i] / kTypicalTimes[streams];
    scale += learned.weight * (learned.ratio - 1.0) / (typical - 1.0);
    scale_weight += learned.weight;
    if (i < guesses) least = std::max(least, std::min(learned.ratio, 1.0 + 2.0 * (typical - 1.0)));
  }
  scale = (scale + kExpectedWeight) / scale_weight;
  const double expected = 1.0 + std::max(0.0, scale) *
                                    (kTypicalTimes[streams + guesses] / kTypicalTimes[streams] - 1.0);
  const Learned& own = learned_[streams][guesses];
  const double ratio = (own.weight * own.ratio + kExpectedWeight * expected) / (own.weight + kExpectedWeight);
  return std::max(ratio, least);
}

double RowCosts::base_ms(std::int32_t num_streams) const {
  const Base& base = bases_[index_of(num_streams)];
  return base.num_steps < kLeastStepsOfBase ? 0.0 : base.milliseconds;
}

void RowCosts::forget_bases() { bases_ = {}; }

void RowCosts::observe(std::int32_t num_streams, std::int32_t num_guesses, double milliseconds) {
  if (num_streams < 1 || num_streams > kMaxStreams || num_guesses > kMaxGuesses) return;
  Base& base = bases_[index_of(num_streams)];
  if (num_guesses == 0) {
    // A step that was held up says little.
    const double told = base.num_steps == 0 ? milliseconds : std::min(milliseconds, 1.5 * base.milliseconds);
    base.num_steps = std::min(base.num_steps + 1, kStepsOfBase);
    base.milliseconds += (told - base.milliseconds) / base.num_steps;
    return;
  }
  if (base.num_steps < kLeastStepsOfBase) return;
  Learned& learned = learned_[index_of(num_streams)][static_cast<std::size_t>(num_guesses)];
  const double told = std::clamp(milliseconds / base.milliseconds, 0.8, 8.0);
  learned.weight = std::min(learned.weight + 1.0, kMostWeight);
  learned.ratio += (told - learned.ratio) / learned.weight;
}

}  // namespace kvasir::spec
