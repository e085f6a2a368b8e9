#include "quant/encode/encode.h"

#include <bit>
#include <cstring>

namespace kvasir::quant {

// To nearest even.
void encode_bf16(const float* values, std::int64_t num_elements, std::byte* row) {
  for (std::int64_t i = 0; i < num_elements; ++i, row += 2) {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(values[i]);
    const bool is_nan = (bits & 0x7fffffffu) > 0x7f800000u;
    const std::uint32_t rounded = is_nan ? bits | 0x400000u : bits + 0x7fffu + (bits >> 16 & 1);
    const auto upper = static_cast<std::uint16_t>(rounded >> 16);
    std::memcpy(row, &upper, sizeof upper);
  }
}

EncodeRow encoder_of(DType dtype) {
  switch (dtype) {
    case DType::kBF16: return encode_bf16;
    case DType::kQ8_0: return encode_q8_0;
    case DType::kQ4_0: return encode_q4_0;
    case DType::kQ4_K: return encode_q4_k;
    case DType::kMXFP4: return encode_mxfp4;
    default: return nullptr;
  }
}

}  // namespace kvasir::quant
