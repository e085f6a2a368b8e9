// How many bytes of KV a sequence has kept while its policy acted.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kvasir/request.h"

namespace kvasir::kv {

// In the layers without a window, as a share of what the budget is a share of: cells, their places and their
// scores.
class BytesUse {
 public:
  // Each time the policy acts: the share that was kept before, and the KV afterwards.
  void add(double before, const KvUsage& after) {
    peak_ = std::max(peak_, before);
    last_ = after;
    sum_ += after.share();
    ++count_;
  }
  bool has_acted() const { return count_ > 0; }
  // And then on another hold, of the same sequence.
  BytesUse followed_by(const BytesUse& later) const {
    if (later.count_ == 0) return *this;
    BytesUse both = later;
    both.peak_ = std::max(peak_, later.peak_);
    both.sum_ += sum_;
    both.count_ += count_;
    return both;
  }
  const KvUsage& last() const { return last_; }
  double last_share() const { return last_.share(); }
  double mean_share() const { return count_ == 0 ? 1.0 : sum_ / count_; }
  double peak_share() const { return count_ == 0 ? 1.0 : peak_; }

 private:
  KvUsage last_;
  double sum_ = 0.0, peak_ = 0.0;
  std::int32_t count_ = 0;
};

}  // namespace kvasir::kv
