// unpack_row of the kinds of formats of which there are several.
#pragma once

#include <cstdint>

#include "base/half.h"
#include "quant/block.h"
#include "quant/sub_scales.h"

namespace kvasir::quant {

// value = scale * (code - zero point)
template <class Format>
void unpack_symmetric(const void* row, std::int64_t num_elements, float* out) {
  for (std::int64_t b = 0; b < num_elements / kCodesOfBlock; ++b, out += kCodesOfBlock) {
    const auto block = block_at<typename Format::Block>(row, b);
    const float scale = half_to_float(block.scale);
    std::uint8_t codes[kCodesOfBlock];
    Format::codes_of(block, 0, codes);
    for (int i = 0; i < kCodesOfBlock; ++i) {
      out[i] = scale * static_cast<float>(codes[i] - Format::kZeroPoint);
    }
  }
}

// value = scale_of(block, element / 16) * (code - zero point)
template <class Format>
void unpack_scaled(const void* row, std::int64_t num_elements, float* out) {
  for (std::int64_t b = 0; b < num_elements / Format::kBlockElements; ++b) {
    const auto block = block_at<typename Format::Block>(row, b);
    for (int s = 0; s < Format::kBlockElements / kCodesOfBlock; ++s, out += kCodesOfBlock) {
      std::uint8_t codes[kCodesOfBlock];
      Format::codes_of(block, s, codes);
      for (int i = 0; i < kCodesOfBlock; ++i) {
        const float scale = Format::scale_of(block, 2 * s + i / 16);
        out[i] = scale * static_cast<float>(codes[i] - Format::kZeroPoint);
      }
    }
  }
}

// value = scale * code + min
template <class Format>
void unpack_affine(const void* row, std::int64_t num_elements, float* out) {
  for (std::int64_t b = 0; b < num_elements / kCodesOfBlock; ++b, out += kCodesOfBlock) {
    const auto block = block_at<typename Format::Block>(row, b);
    const float scale = half_to_float(block.scale);
    const float min = half_to_float(block.min);
    std::uint8_t codes[kCodesOfBlock];
    Format::codes_of(block, 0, codes);
    for (int i = 0; i < kCodesOfBlock; ++i) out[i] = scale * static_cast<float>(codes[i]) + min;
  }
}

// value = (scale * sub_scale) * code - min_scale * sub_min; the products with 6-bit integers are exact.
template <class Format>
void unpack_super_affine(const void* row, std::int64_t num_elements, float* out) {
  for (std::int64_t b = 0; b < num_elements / kSuperBlockElements; ++b) {
    const auto block = block_at<typename Format::Block>(row, b);
    for (int s = 0; s < kSuperBlockElements / kCodesOfBlock; ++s, out += kCodesOfBlock) {
      const float scale = half_to_float(block.scale) * sub_scale_of(block.sub_scales_mins, s);
      const float min = half_to_float(block.min_scale) * sub_min_of(block.sub_scales_mins, s);
      std::uint8_t codes[kCodesOfBlock];
      Format::codes_of(block, s, codes);
      for (int i = 0; i < kCodesOfBlock; ++i) out[i] = scale * static_cast<float>(codes[i]) - min;
    }
  }
}

}  // namespace kvasir::quant
