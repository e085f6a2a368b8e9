// How often guesses turn out right.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace kvasir::spec {

// How sure a guess is, before anything is known of guesses like it.
struct Grade {
  static constexpr std::size_t kNumBuckets = 8;

  // `num_matching`: tokens before it that stood before what is guessed, guessed ones included.
  static Grade of_match(std::int32_t num_matching);
  // By the chance that its source gives it.
  static Grade of_chance(double chance);

  std::size_t bucket = 0;  // guesses that are counted together
  double typical = 0.0;    // their share that is right
};

// By bucket. Counts fade with a half-life of 256 guesses.
//
// Thread safety: none.
class Acceptance {
 public:
  // Null: nothing is known before. `prior` outlives this.
  explicit Acceptance(const Acceptance* prior = nullptr) : prior_(prior) {}

  // The probability that the guess is right when all before it are.
  double estimate(Grade grade) const;
  void observe(Grade grade, bool is_right);

 private:
  struct Counts {
    double num_right = 0.0;
    double num_all = 0.0;
  };

  const Acceptance* prior_ = nullptr;
  std::array<Counts, Grade::kNumBuckets> counts_{};
};

}  // namespace kvasir::spec
