// What rows of guesses add to the time of a step.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace kvasir::spec {

// Of steps in which so many streams run one token each and nothing else runs. Times come from the steps that ran, ratios
// before that from a CPU on which rows go in twos, eights and sixteens.
//
// Thread safety: none.
class RowCosts {
 public:
  static constexpr std::int32_t kMaxStreams = 16;  // with more nothing is guessed
  static constexpr std::int32_t kMaxGuesses = 16;  // in a step

  // The time with `num_guesses` rows over the time without.
  double ratio(std::int32_t num_streams, std::int32_t num_guesses) const;
  // The time of a step without guesses in milliseconds; 0: not known well enough yet.
  double base_ms(std::int32_t num_streams) const;
  void observe(std::int32_t num_streams, std::int32_t num_guesses, double milliseconds);
  // Other streams run now, whose texts have other lengths: times without guesses are measured anew.
  void forget_bases();

 private:
  static std::size_t index_of(std::int32_t num_streams) { return static_cast<std::size_t>(num_streams); }
  struct Learned {
    double ratio = 0.0;
    double weight = 0.0;
  };
  struct Base {
    double milliseconds = 0.0;
    std::int32_t num_steps = 0;
  };

  std::array<Base, kMaxStreams + 1> bases_{};
  std::array<std::array<Learned, kMaxGuesses + 1>, kMaxStreams + 1> learned_{};
};

}  // namespace kvasir::spec
