// A random basis of keys, for tests and benchmarks of cells with keys in components.
#pragma once

#include <cstdint>
#include <vector>

#include "kv/cells/key_basis.h"

namespace kvasir::kernels {

// A quarter of the channels' directions has 5 bits, a quarter 2, a quarter 1 and a quarter none. Steps suit keys that are
// `deviation` long in every channel. Not copied: the basis points into it.
class RandomKeyBasis {
 public:
  RandomKeyBasis(std::int32_t head_dim, std::int32_t num_blocks, float deviation, std::uint32_t seed);
  RandomKeyBasis(const RandomKeyBasis&) = delete;
  RandomKeyBasis& operator=(const RandomKeyBasis&) = delete;

  const kv::KeyBasis& basis() const { return basis_; }

 private:
  std::vector<float> of_queries_, constants_, of_keys_, key_offsets_, greatest_, units_, angles_;
  std::vector<std::int16_t> codes_;
  kv::KeyBasis basis_;
};

}  // namespace kvasir::kernels
