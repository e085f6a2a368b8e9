// Principal components of a layer group's keys: from statistics of what the model computes to what kernels read.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kv/cells/key_basis.h"

namespace kvasir::kv {

// The statistics of one head's keys, each turned back by the position of its block's first token (RoPE), so that blocks
// look alike wherever they lie.
struct KeyStatistics {
  std::vector<float> mean;        // [head_dim]
  std::vector<float> directions;  // [components][head_dim], of length 1; the largest deviation first
  std::vector<float> deviations;  // [components], of the keys along them; above 0
  std::vector<std::int8_t> bits;  // [components], 1 to kMaxComponentBits, never rising; kKeyPlanesPerChannel x head_dim together
};

// How a group's keys turn with their position.
struct KeyTurning {
  std::span<const double> inverse_frequencies;  // radians per position, [rotary_dim / 2]
  bool turns_halves = false;
};

// The bases of a layer group, by cell. Immutable; any thread may read it.
class KeyBases {
 public:
  // For blocks [0, num_blocks). Requires: every cell's statistics are whole (are_whole()).
  KeyBases(std::span<const KeyStatistics> cells, std::int32_t head_dim, const KeyTurning& turning, std::int32_t num_blocks);
  KeyBases(const KeyBases&) = delete;
  KeyBases& operator=(const KeyBases&) = delete;

  // Whether the vectors have their sizes, the bits their order and sum, and all numbers are finite.
  static bool are_whole(const KeyStatistics& statistics, std::int32_t head_dim);

  const KeyBasis* data() const { return bases_.data(); }

 private:
  void add_columns(const KeyStatistics& statistics, std::int32_t head_dim, float* numbers, std::int16_t* codes, KeyBasis& basis);

  std::vector<float> numbers_;
  std::vector<std::int16_t> codes_;
  std::vector<KeyBasis> bases_;
};

// Bits and what is kept of components whose keys have these deviations, [head_dim] and never rising: so that the squared
// error of normal numbers is least. Components without a bit are left out.
std::vector<std::int8_t> component_bits(std::span<const float> deviations);

}  // namespace kvasir::kv
