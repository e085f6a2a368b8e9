// How often guesses turn out right.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace kvasir::spec {

// By the number of tokens that match before the guess, guessed ones included. Counts fade with a half-life of 256 guesses.
//
// Thread safety: none.
class Acceptance {
 public:
  // Null: nothing is known before. `prior` outlives this.
  explicit Acceptance(const Acceptance* prior = nullptr) : prior_(prior) {}
  // Before anything is known each guess is as likely to be right.
  explicit Acceptance(double share) : share_(share) {}

  // The probability that the guess is right when all before it are.
  double estimate(std::int32_t match_length) const;
  void observe(std::int32_t match_length, bool is_right);

 private:
  static constexpr std::size_t kNumBuckets = 8;
  struct Counts {
    double num_right = 0.0;
    double num_all = 0.0;
  };
  static std::size_t bucket_of(std::int32_t match_length);

  const Acceptance* prior_ = nullptr;
  double share_ = 0.0;  // 0: by length, as is typical
  std::array<Counts, kNumBuckets> counts_{};
};

}  // namespace kvasir::spec
