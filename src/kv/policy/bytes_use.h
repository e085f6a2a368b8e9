// How many bytes of KV a sequence has kept while its policy acted.
#pragma once

#include <algorithm>
#include <cstdint>

namespace kvasir::kv {

// In the layers without a window, as a share of what the budget is a share of: cells, their places and their
// scores.
class BytesUse {
 public:
  // Each time the policy acts: what was kept before, and afterwards.
  void add(double before, double after) {
    peak_ = std::max(peak_, before);
    last_ = after;
    sum_ += after;
    ++count_;
  }
  // And then on another hold, of the same sequence.
  BytesUse followed_by(const BytesUse& later) const {
    if (later.count_ == 0) return *this;
    BytesUse both = later;
    both.peak_ = std::max(peak_, later.peak_);
    both.sum_ += sum_;
    both.count_ += count_;
    return both;
  }
  double last_share() const { return last_; }
  double mean_share() const { return count_ == 0 ? 1.0 : sum_ / count_; }
  double peak_share() const { return count_ == 0 ? 1.0 : peak_; }

 private:
  double last_ = 1.0, sum_ = 0.0, peak_ = 0.0;
  std::int32_t count_ = 0;
};

}  // namespace kvasir::kv
