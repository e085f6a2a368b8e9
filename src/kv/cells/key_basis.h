// How the keys of a KV head lie in their principal components, in cells of KvCode::kComponents. Plain numbers: kernels
// include it.
#pragma once

#include <cstdint>

namespace kvasir::kv {

// Bits of a component, at most; a head's components have kKeyPlanesPerChannel times head_dim bits together.
inline constexpr int kMaxComponentBits = 6, kKeyPlanesPerChannel = 2;

// A key, turned back by the position of its block's first token, is the mean plus the sum over components c of direction_c x step_c x
// (n_c - 2^(bits_c - 1) + 1/2), where n_c is a number of bits_c bits. Plane p of a cell has one bit of its 16 tokens: first
// the highest bits, of the components that have so many, in their order; then the next ones.
struct KeyBasis {
  std::int32_t num_components = 0;
  std::int32_t stride = 0;  // components and zeros up to a multiple of 16
  // A query times it gives the weights of the components' numbers, and times the constants what is added to the score.
  const float* of_queries = nullptr;  // [head_dim][stride]
  const float* constants = nullptr;   // [head_dim]
  // The same matrix as integers times a unit of each component, pairs of channels together, for 16-bit products:
  // [stride / 16][head_dim / 2][16][2]. No sum of products with numbers of 15 bits leaves 32 bits.
  const std::int16_t* query_codes = nullptr;
  const float* query_units = nullptr;  // [stride]
  // A key times it, plus the offsets, rounded and kept from 0 to the greatest number, is n.
  const float* of_keys = nullptr;          // [head_dim][stride]
  const float* key_offsets = nullptr;      // [stride]
  const float* greatest_numbers = nullptr;  // [stride], 0 behind the components
  // Components with more than b bits.
  std::int32_t num_with_bit[kMaxComponentBits] = {};
  // RoPE that turns a block back to position 0: [blocks][2][rotary_dim / 2], cos and -sin.
  const float* angles = nullptr;
  std::int32_t rotary_dim = 0;
  bool turns_halves = false;  // pairs (i, i + rotary_dim / 2); else (2 i, 2 i + 1)

  const float* angles_of(std::int32_t block) const { return angles + std::int64_t{block} * rotary_dim; }
};

}  // namespace kvasir::kv
