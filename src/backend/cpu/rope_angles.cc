#include "backend/cpu/rope_angles.h"

#include <algorithm>
#include <cmath>

namespace kvasir::backend {
namespace {

constexpr std::int32_t kPositionsPerAnchor = 16;

}  // namespace

void RopeAngles::write_angles(std::int32_t position, std::span<const double> frequencies, Angles& angles) {
  angles.cos.resize(frequencies.size());
  angles.sin.resize(frequencies.size());
  for (std::size_t i = 0; i < frequencies.size(); ++i) {
    const double angle = position * frequencies[i];
    angles.cos[i] = std::cos(angle);
    angles.sin[i] = std::sin(angle);
  }
}

void RopeAngles::set_ropes(std::span<const RopeTable> ropes) {
  kinds_.resize(ropes.size());
  for (std::size_t i = 0; i < ropes.size(); ++i) {
    Kind& kind = kinds_[i];
    if (!kind.rests.empty() && std::ranges::equal(kind.frequencies, ropes[i].inverse_frequencies)) continue;
    kind.frequencies.assign(ropes[i].inverse_frequencies.begin(), ropes[i].inverse_frequencies.end());
    kind.rests.resize(kPositionsPerAnchor);
    for (std::int32_t rest = 0; rest < kPositionsPerAnchor; ++rest) {
      write_angles(rest, kind.frequencies, kind.rests[static_cast<std::size_t>(rest)]);
    }
    kind.anchors.assign(num_workers_, {.position = 0, .angles = kind.rests.front()});
  }
}

void RopeAngles::compute(std::size_t rope, std::int32_t position, int worker, float* values) {
  Kind& kind = kinds_[rope];
  Anchor& anchor = kind.anchors[static_cast<std::size_t>(worker)];
  const std::size_t half = kind.frequencies.size();
  const std::int32_t rest = position % kPositionsPerAnchor;
  if (anchor.position != position - rest) {
    anchor.position = position - rest;
    write_angles(anchor.position, kind.frequencies, anchor.angles);
  }
  const double* cos_a = anchor.angles.cos.data();
  const double* sin_a = anchor.angles.sin.data();
  const double* cos_b = kind.rests[static_cast<std::size_t>(rest)].cos.data();
  const double* sin_b = kind.rests[static_cast<std::size_t>(rest)].sin.data();
  for (std::size_t i = 0; i < half; ++i) {
    values[i] = static_cast<float>(cos_a[i] * cos_b[i] - sin_a[i] * sin_b[i]);
    values[half + i] = static_cast<float>(sin_a[i] * cos_b[i] + cos_a[i] * sin_b[i]);
  }
}

}  // namespace kvasir::backend
