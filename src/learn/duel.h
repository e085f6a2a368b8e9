// Whether a challenger's plans cost less than the champion's, sequence by sequence.
#pragma once

#include <cstdint>

#include "base/e_process.h"
#include "learn/shadow_judge.h"

namespace kvasir::learn {

enum class DuelVerdict : std::uint8_t { kUndecided, kChallenger, kChampion };

// Evidence is a bet on the bounded logarithm of the ratio of costs, the mean over budgets. So one lucky sequence cannot decide,
// and one may look after each. As long as the challenger costs at least kLeastGain less in no sequence's expectation, it wins
// with a chance of at most 1 / evidence_to_win.
//
// Thread safety: none.
class Duel {
 public:
  explicit Duel(double evidence_to_win);

  // A sequence that neither has learned from, in the order of time.
  DuelVerdict note(const ShadowCost& champion, const ShadowCost& challenger);

  std::int64_t count() const { return count_; }
  double log10_evidence() const { return gain_.log10_evidence(); }
  // Of the sums of costs over all sequences and budgets.
  double ratio() const { return champion_sum_ > 0.0 ? challenger_sum_ / champion_sum_ : 1.0; }
  double mean_log_ratio() const { return count_ > 0 ? log_ratio_sum_ / static_cast<double>(count_) : 0.0; }

  // Of blocks that were asked for and that the plans drop, the challenger's to the champion's.
  double asked_ratio() const { return champion_dropped_ > 0.0 ? challenger_dropped_ / champion_dropped_ : 1.0; }
  // The challenger's to all blocks that were asked for.
  double asked_dropped_share() const { return asked_ > 0.0 ? challenger_dropped_ / asked_ : 0.0; }

  static constexpr double kLeastGain = 0.05;
  static constexpr std::int64_t kLeastSequences = 200;
  static constexpr std::int64_t kMostSequences = 400;  // then the champion stays
  static constexpr double kMostLogRatio = 0.5;         // of a sequence, either way
  // A winner's plans may drop so many of the blocks that were asked for: beside the champion's, or of all.
  static constexpr double kMostAskedFor = 1.1, kFewAskedFor = 0.001;

 private:
  EProcess gain_;
  double evidence_to_win_;
  std::int64_t count_ = 0;
  double champion_sum_ = 0.0, challenger_sum_ = 0.0, log_ratio_sum_ = 0.0;
  double asked_ = 0.0, champion_dropped_ = 0.0, challenger_dropped_ = 0.0;
};

// Whether a champion's plans cost more than those of decayed mass, which needs no learning.
class LossWatch {
 public:
  LossWatch() : loss_(0.5) {}
  void note(const ShadowCost& champion, const ShadowCost& decayed_mass);
  bool has_lost() const { return loss_.count() >= Duel::kLeastSequences && loss_.evidence() >= kEvidence; }
  static constexpr double kEvidence = 20.0;

 private:
  EProcess loss_;
};

}  // namespace kvasir::learn
