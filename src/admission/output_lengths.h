// How long answers get, learned from those that ended.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace kvasir::admission {

// A histogram with a memory of about fifty answers, in quarters of an octave.
//
// Thread safety: none.
class OutputLengths {
 public:
  // An answer ended after so many tokens, at least 1.
  void observe(std::int32_t num_tokens);
  // Three of four answers of those that are longer than `num_generated` end by this length, as far as is
  // known; more than `num_generated` where `max_tokens` allows, and at most `max_tokens`.
  std::int32_t predict(std::int32_t num_generated, std::int32_t max_tokens) const;

 private:
  static constexpr std::size_t kNumBuckets = 96;  // up to 2^24 tokens
  static std::size_t bucket_of(std::int32_t num_tokens);
  static std::int32_t upper_bound_of(std::size_t bucket);

  std::array<double, kNumBuckets> weights_{};
};

}  // namespace kvasir::admission
