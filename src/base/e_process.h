// Evidence that a mean is above what was promised, which may be looked at after every observation.
#pragma once

#include <array>
#include <cstdint>

namespace kvasir {

// Observations lie in [0, 1]. As long as each one's expectation, given those before, is at most the promise, the evidence
// reaches E with a chance of at most 1 / E over all time (Ville's inequality). It is a bet: each stake multiplies by
// 1 + rate (x - promise). Stakes differ in rate, and one is laid down before each observation, with parts of a whole
// that add up to less than 1. So a fault that comes after many good observations is seen about as soon as an early one.
//
// Source: Waudby-Smith and Ramdas, "Estimating means of bounded random variables by betting", 2024; Ramdas et al., "Game-
// theoretic statistics and safe anytime-valid inference", 2023. Thread safety: none.
class EProcess {
 public:
  // Requires: 0 < promise < 1.
  explicit EProcess(double promise);

  void add(double observation);
  double evidence() const { return evidence_; }
  double log10_evidence() const;
  std::int64_t count() const { return count_; }

 private:
  static constexpr std::size_t kNumRates = 6;
  double promise_;
  std::array<double, kNumRates> rates_{};
  std::array<double, kNumRates> capital_{};
  double evidence_ = 0.0;
  std::int64_t count_ = 0;
};

}  // namespace kvasir
