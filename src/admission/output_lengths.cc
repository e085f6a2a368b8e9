#include "admission/output_lengths.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace kvasir::admission {
namespace {

constexpr double kLengthForgetting = 0.98;
constexpr double kQuantile = 0.75;
// Below so much of an answer's weight a bucket says nothing any more.
constexpr double kNothing = 1e-3;
// The length for tenants without known lengths.
constexpr std::int32_t kUsualTokens = 256;
constexpr double kBucketsPerOctave = 4.0;

}  // namespace

std::size_t OutputLengths::bucket_of(std::int32_t num_tokens) {
  const double octaves = std::log2(static_cast<double>(std::max(num_tokens, 1)));
  return std::min(kNumBuckets - 1, static_cast<std::size_t>(std::ceil(octaves * kBucketsPerOctave)));
}

std::int32_t OutputLengths::upper_bound_of(std::size_t bucket) {
  return static_cast<std::int32_t>(std::exp2(static_cast<double>(bucket) / kBucketsPerOctave));
}

void OutputLengths::observe(std::int32_t num_tokens) {
  for (double& weight : weights_) weight *= kLengthForgetting;
  weights_[bucket_of(num_tokens)] += 1.0;
}

std::int32_t OutputLengths::predict(std::int32_t num_generated, std::int32_t max_tokens) const {
  const auto first = static_cast<std::ptrdiff_t>(bucket_of(num_generated + 1));
  const double longer = std::accumulate(weights_.begin() + first, weights_.end(), 0.0);
  std::int32_t length = std::max(kUsualTokens, 2 * num_generated);  // as much again, if none was longer
  if (longer > kNothing) {
    double below = 0.0;
    auto bucket = static_cast<std::size_t>(first);
    while (bucket + 1 < kNumBuckets && (below += weights_[bucket]) < kQuantile * longer) ++bucket;
    length = upper_bound_of(bucket);
  }
  return std::min(std::max(length, num_generated + 1), max_tokens);
}

}  // namespace kvasir::admission
