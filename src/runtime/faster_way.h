// Which of two ways to the same result is the faster on this machine.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace kvasir::runtime {

// Knows the ways by the times of their last runs: by the median, for a machine is interrupted at times. Both are tried
// in turn at first. Later the slower one runs now and then, because times may depend on what is computed.
//
// Thread safety: none.
class FasterWay {
 public:
  static constexpr std::int32_t kTrials = 4;    // of each way
  static constexpr std::int32_t kPeriod = 128;  // runs for one of the slower way

  // The way of the next run: 0 or 1.
  std::size_t next() const;
  void observe(std::size_t way, double nanoseconds);

 private:
  static constexpr std::size_t kKept = 7;
  struct Way {
    std::array<double, kKept> nanoseconds{};  // of the last runs, in a ring
    std::int32_t num_runs = 0;
    double median_ns = 0.0;
  };

  std::array<Way, 2> ways_{};
};

}  // namespace kvasir::runtime
