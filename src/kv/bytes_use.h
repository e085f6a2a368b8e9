// How many bytes of KV a sequence has kept while its policy acted.
#pragma once

#include <algorithm>
#include <cstdint>

namespace kvasir::kv {

// In the layers without a window, as a share of the same keys and values in f16: cells, their places and
// their scores.
class BytesUse {
 public:
  // Each time the policy acts: what was kept before, and afterwards.
  void add(double before, double after) {
    peak_ = std::max(peak_, before);
    sum_ += after;
    ++count_;
  }
  double mean_share() const { return count_ == 0 ? 1.0 : sum_ / count_; }
  double peak_share() const { return count_ == 0 ? 1.0 : peak_; }

 private:
  double sum_ = 0.0, peak_ = 0.0;
  std::int32_t count_ = 0;
};

}  // namespace kvasir::kv
