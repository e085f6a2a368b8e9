#include "learn/duel.h"

#include <algorithm>
#include <cmath>

namespace kvasir::learn {
namespace {

// The share of the bets' range that a logarithm stands at: 0 where the first costs e^kMostLogRatio more, 1 where it costs so
// much less.
double place_of(double log_ratio) { return 0.5 - log_ratio / (2 * Duel::kMostLogRatio); }

// Of the first one's costs to the second's, bounded. 0 where a cost is no amount.
double log_ratio_of(const ShadowCost& first, const ShadowCost& second) {
  double sum = 0.0;
  for (std::size_t i = 0; i < kDuelBudgets.size(); ++i) {
    const double ratio = first.of_plan[i] / second.of_plan[i];
    if (!std::isfinite(ratio) || ratio <= 0.0) return 0.0;
    sum += std::log(ratio);
  }
  return std::clamp(sum / static_cast<double>(kDuelBudgets.size()), -Duel::kMostLogRatio, Duel::kMostLogRatio);
}

double sum_of(const ShadowCost& cost) {
  double sum = 0.0;
  for (const double of_plan : cost.of_plan) sum += of_plan;
  return sum;
}

}  // namespace

Duel::Duel(double evidence_to_win) : gain_(place_of(std::log1p(-kLeastGain))), evidence_to_win_(evidence_to_win) {}

DuelVerdict Duel::note(const ShadowCost& champion, const ShadowCost& challenger) {
  const double log_ratio = log_ratio_of(challenger, champion);
  ++count_;
  log_ratio_sum_ += log_ratio;
  champion_sum_ += sum_of(champion);
  challenger_sum_ += sum_of(challenger);
  asked_ += challenger.asked_for;
  champion_dropped_ += champion.asked_for_dropped;
  challenger_dropped_ += challenger.asked_for_dropped;
  gain_.add(place_of(log_ratio));
  if (count_ < kLeastSequences) return DuelVerdict::kUndecided;
  const double least = std::log1p(-kLeastGain);
  const bool gains = mean_log_ratio() <= least && ratio() <= 1.0 - kLeastGain;
  const bool loses_answers = challenger_dropped_ > std::max(kMostAskedFor * champion_dropped_, kFewAskedFor * asked_);
  if (gains && !loses_answers && gain_.evidence() >= evidence_to_win_) return DuelVerdict::kChallenger;
  const bool is_hopeless = mean_log_ratio() > least || count_ >= kMostSequences;
  return is_hopeless ? DuelVerdict::kChampion : DuelVerdict::kUndecided;
}

void LossWatch::note(const ShadowCost& champion, const ShadowCost& decayed_mass) {
  loss_.add(1.0 - place_of(log_ratio_of(champion, decayed_mass)));
}

}  // namespace kvasir::learn
