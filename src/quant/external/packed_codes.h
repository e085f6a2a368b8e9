// Codes of 4 or 8 bits as other engines' checkpoints pack them into 32-bit words, an output row at a time.
#pragma once

#include <cstdint>

namespace kvasir::quant {

// `words` need no alignment. A word holds 32 / bits codes, the first in its lowest bits.
struct PackedCodes {
  const void* words = nullptr;
  std::int64_t num_outputs = 0, num_inputs = 0;
  int bits = 4;
};

// compressed-tensors, "pack-quantized": words [outputs, inputs / codes a word] along inputs.
void compressed_row(const PackedCodes& packed, std::int64_t output, std::uint8_t* codes);
// Its zero points, packed along outputs: words [outputs / codes a word, groups].
std::uint8_t compressed_zero(const void* words, int bits, std::int64_t output, std::int64_t group,
                             std::int64_t num_groups);
// GPTQ: words [inputs / codes a word, outputs] along inputs.
void gptq_row(const PackedCodes& packed, std::int64_t output, std::uint8_t* codes);
// Its zeros: words [groups, outputs / codes a word] along outputs, as stored.
std::uint8_t gptq_zero(const void* words, int bits, std::int64_t output, std::int64_t group,
                       std::int64_t num_outputs);
// AWQ ("gemm"), 4 bits: words [inputs, outputs / 8] along outputs, which lie in the order 0 2 4 6 1 3 5 7.
void awq_row(const PackedCodes& packed, std::int64_t output, std::uint8_t* codes);
// Its zeros: words [groups, outputs / 8] in the same order.
std::uint8_t awq_zero(const void* words, std::int64_t output, std::int64_t group, std::int64_t num_outputs);

}  // namespace kvasir::quant
