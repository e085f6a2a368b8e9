// cos and sin of positions, for every kind of RoPE that a model has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "backend/backend.h"

namespace kvasir::backend {

// Composes those of a position from those of the multiple of 16 before it and of the rest, in double
// precision: where positions follow each other, as in a prompt, that is a sixteenth of the library's work,
// which counts when a step runs one layer alone. The angles of a position depend on the position alone.
//
// Thread safety: after set_ropes(), compute() may run on several threads under different worker numbers.
class RopeAngles {
 public:
  explicit RopeAngles(int num_workers) : num_workers_(static_cast<std::size_t>(num_workers)) {}

  // The kinds of the coming calls. Cheap when they are those of the call before.
  void set_ropes(std::span<const RopeTable> ropes);

  std::int32_t half_dim(std::size_t rope) const {
    return static_cast<std::int32_t>(kinds_[rope].frequencies.size());
  }
  // values: [half_dim] cos, then [half_dim] sin.
  void compute(std::size_t rope, std::int32_t position, int worker, float* values);

 private:
  struct Angles {
    std::vector<double> cos, sin;
  };
  struct Anchor {
    std::int32_t position = 0;
    Angles angles;
  };
  struct Kind {
    std::vector<double> frequencies;  // radians per position
    std::vector<Angles> rests;        // of positions 0 to 15
    std::vector<Anchor> anchors;      // by worker: the multiple of 16 it met last
  };
  static void write_angles(std::int32_t position, std::span<const double> frequencies, Angles& angles);

  const std::size_t num_workers_;
  std::vector<Kind> kinds_;
};

}  // namespace kvasir::backend
