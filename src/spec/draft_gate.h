// How many guesses a step runs.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "spec/row_costs.h"

namespace kvasir::spec {

// Runs as many as bring the most tokens for the time, by what guesses are worth and rows cost. When steps with guesses
// have brought fewer tokens for their time than steps without, it dozes: 256 steps, then twice as many each time, up to
// 2,048. Meanwhile only guesses that promise a quarter more tokens run, so that doubtful ones do not take the sure ones with
// them. When even those do not pay, it sleeps, and nothing is guessed.
//
// Thread safety: none.
class DraftGate {
 public:
  struct Stream {
    // How likely its first guess is to be right, its first two, ...; descending.
    std::vector<double> survival;
    bool needs_passes = false;  // a model has to make its guesses, in a pass for each
  };

  // How many guesses of each stream run. All 0 where none pays, in each kPlainEvery-th step, and while it sleeps.
  std::span<const std::int32_t> choose(std::span<const Stream> streams);
  // A step brought so many tokens, in which these streams ran one token each, and guesses that had taken draft_ms to make.
  void observe(std::int32_t num_streams, std::int32_t num_guesses, std::int32_t num_tokens, double milliseconds,
               double draft_ms = 0.0);
  // The passes of a model took so long.
  void observe_passes(std::int32_t num_passes, double milliseconds);

  void forget_bases() { costs_.forget_bases(); }

  // Sums over steps with guesses, since the times without are known.
  struct Times {
    double expected_ms = 0.0, ms = 0.0;
  };
  const Times& times() const { return times_; }

  // Guesses that are less likely than this to survive do not pay beside so many streams. Above 1: none does.
  double least_survival(std::int32_t num_streams) const;

  bool is_asleep() const { return depth_ == Depth::kAsleep; }
  const RowCosts& costs() const { return costs_; }

 private:
  static constexpr std::int32_t kPlainEvery = 24;
  static constexpr std::int32_t kJudgedSteps = 64;
  static constexpr std::int32_t kLeastSleep = 256, kMostSleep = 2048;
  enum class Depth : std::uint8_t { kAwake, kDozing, kAsleep };

  void judge();
  void pass_time();
  double least_worth() const;
  double pass_share(std::int32_t num_streams) const;

  RowCosts costs_;
  Times times_;
  double pass_ms_ = 0.0;  // of a model that guesses; 0: not known yet
  std::vector<std::int32_t> chosen_;
  std::int32_t num_since_plain_ = 0;
  // Of the steps with guesses since the last judgement: their tokens, and how many those times would have brought without.
  std::int32_t num_judged_ = 0;
  double num_tokens_ = 0.0, num_plain_tokens_ = 0.0;
  Depth depth_ = Depth::kAwake;
  std::int32_t num_to_sleep_ = 0, next_sleep_ = kLeastSleep;
};

}  // namespace kvasir::spec
