// Keys in principal components, one number at a time: what the planes of kv/cells/key_basis.h mean.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kv/cells/key_basis.h"

namespace kvasir::kernels::ref {

// The key [head_dim] of a token of a half cell that is the block-th of its sequence.
std::vector<float> component_key(const kv::KeyBasis& basis, const std::byte* half, std::int32_t head_dim, std::int32_t block,
                                 std::int32_t token);

// Writes 16 keys [16][head_dim] into a half.
void write_components(const kv::KeyBasis& basis, const std::vector<std::vector<float>>& keys, std::int32_t block, std::byte* half);

}  // namespace kvasir::kernels::ref
