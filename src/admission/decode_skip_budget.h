// How often a step may leave out streams of tenants that have had more than their share.
#pragma once

#include <algorithm>

namespace kvasir::admission {

// Three times within a few steps, once in 40 in the long run, and never two steps in a row: of a hundred
// tokens of an answer at most five come late by it.
class DecodeSkipBudget {
 public:
  bool may_skip() const { return allowance_ >= 1.0 && !are_due(); }
  // Whether the last step left some out: the next is for all streams and computes no prompts beside.
  bool are_due() const { return were_skipped_; }
  // A step has begun.
  void count(bool are_skipped) {
    were_skipped_ = are_skipped;
    allowance_ = std::min(kMost, allowance_ + kPerStep) - (are_skipped ? 1.0 : 0.0);
  }

 private:
  static constexpr double kMost = 3.0;
  static constexpr double kPerStep = 1.0 / 40.0;
  double allowance_ = kMost;
  bool were_skipped_ = false;
};

}  // namespace kvasir::admission
