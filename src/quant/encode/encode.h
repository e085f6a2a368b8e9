// Floats to the blocks of a weight format.
#pragma once

#include <cstddef>
#include <cstdint>

#include "quant/dtype.h"

namespace kvasir::quant {

// Writes `num_elements` numbers, a multiple of the format's block, in its file layout. A pure function: which rows are
// encoded together, or on which thread, cannot show. NaN and infinity give blocks whose scales are no numbers.
using EncodeRow = void (*)(const float* values, std::int64_t num_elements, std::byte* row);

// Q4_0 rounds as the gguf package does, bit for bit; so does MXFP4 but for numbers within a rounding of a power of two.
// Q8_0 does too, unless one of 33 other scales has a smaller squared error. Q4_K looks for the scale and minimum of each
// 32 numbers that err least, large numbers counting more.
void encode_bf16(const float* values, std::int64_t num_elements, std::byte* row);
void encode_q8_0(const float* values, std::int64_t num_elements, std::byte* row);
void encode_q4_0(const float* values, std::int64_t num_elements, std::byte* row);
void encode_q4_k(const float* values, std::int64_t num_elements, std::byte* row);
void encode_mxfp4(const float* values, std::int64_t num_elements, std::byte* row);

// Null when the format has none.
EncodeRow encoder_of(DType dtype);

}  // namespace kvasir::quant
