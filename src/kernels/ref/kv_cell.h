// Reading and writing one number of a KV cell at a time: what the codes of kv/cells/cell.h mean.
#pragma once

#include <vector>

#include "kernels/table.h"

namespace kvasir::kernels::ref {

// Key or value `channel` of `token` of a half cell, in the half's own basis.
float key_number(kv::KvCode code, const std::byte* half, std::int32_t head_dim, std::int32_t token,
                 std::int32_t channel);
float value_number(kv::KvCode code, const std::byte* half, std::int32_t head_dim, std::int32_t token,
                   std::int32_t channel);

// A cell and what its keys in components need.
struct KeyPlace {
  kv::KvFormat format;
  std::int32_t head_dim;
  const std::byte* cell;
  const kv::KeyBasis* basis = nullptr;
  std::int32_t block = 0;  // the cell's place in its sequence
};
// The key [head_dim] of a token, in plain numbers.
std::vector<float> key_of(const KeyPlace& place, std::int32_t token);

// Rounds keys [head_dim] or values of a token into its slot of a half of 12 bits. Returns false where a
// number is beyond the format: then all of them become 0.
bool write_row_12(const float* row, bool of_keys, std::int32_t head_dim, std::int32_t slot, std::byte* half);

// x = H x of one row of head_dim numbers, a multiple of 32: the fast Walsh-Hadamard transform, neighbours
// first.
void rotate(std::vector<float>& x);

}  // namespace kvasir::kernels::ref
