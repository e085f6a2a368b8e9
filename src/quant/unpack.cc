#include <cstring>

#include "base/half.h"
#include "quant/codes.h"
#include "quant/format.h"
#include "quant/layout.h"

namespace kvasir::quant {
namespace {

void unpack_f32(const void* row, std::int64_t num_elements, float* out) {
  std::memcpy(out, row, static_cast<std::size_t>(num_elements) * sizeof(float));
}

void unpack_f16(const void* row, std::int64_t num_elements, float* out) {
  for (std::int64_t i = 0; i < num_elements; ++i) out[i] = half_to_float(block_at<std::uint16_t>(row, i));
}

void unpack_bf16(const void* row, std::int64_t num_elements, float* out) {
  for (std::int64_t i = 0; i < num_elements; ++i) out[i] = bf16_to_float(block_at<std::uint16_t>(row, i));
}

// value = scale * (code - zero point)
template <class Block>
void unpack_symmetric(const void* row, std::int64_t num_elements, float* out) {
  for (std::int64_t b = 0; b < num_elements / kBlockElements; ++b, out += kBlockElements) {
    const auto block = block_at<Block>(row, b);
    const float scale = half_to_float(block.scale);
    std::uint8_t codes[kBlockElements];
    codes_of(block, 0, codes);
    for (int i = 0; i < kBlockElements; ++i) {
      out[i] = scale * static_cast<float>(codes[i] - zero_point_of(Block::kDType));
    }
  }
}

// value = scale * code + min
template <class Block>
void unpack_affine(const void* row, std::int64_t num_elements, float* out) {
  for (std::int64_t b = 0; b < num_elements / kBlockElements; ++b, out += kBlockElements) {
    const auto block = block_at<Block>(row, b);
    const float scale = half_to_float(block.scale);
    const float min = half_to_float(block.min);
    std::uint8_t codes[kBlockElements];
    codes_of(block, 0, codes);
    for (int i = 0; i < kBlockElements; ++i) out[i] = scale * static_cast<float>(codes[i]) + min;
  }
}

// value = (scale * sub_scale) * code - min_scale * sub_min; the products with 6-bit integers are exact.
template <class Block>
void unpack_super_affine(const void* row, std::int64_t num_elements, float* out) {
  for (std::int64_t b = 0; b < num_elements / kSuperBlockElements; ++b) {
    const auto block = block_at<Block>(row, b);
    for (int s = 0; s < kSubBlocks; ++s, out += kBlockElements) {
      const float scale = half_to_float(block.scale) * sub_scale_of(block.sub_scales_mins, s);
      const float min = half_to_float(block.min_scale) * sub_min_of(block.sub_scales_mins, s);
      std::uint8_t codes[kBlockElements];
      codes_of(block, s, codes);
      for (int i = 0; i < kBlockElements; ++i) out[i] = scale * static_cast<float>(codes[i]) - min;
    }
  }
}

// value = (scale * sub_scale) * (code - 32), a sub-scale for every 16 elements
void unpack_q6_k(const void* row, std::int64_t num_elements, float* out) {
  for (std::int64_t b = 0; b < num_elements / kSuperBlockElements; ++b) {
    const auto block = block_at<BlockQ6_K>(row, b);
    for (int s = 0; s < kSubBlocks; ++s, out += kBlockElements) {
      std::uint8_t codes[kBlockElements];
      codes_of(block, s, codes);
      for (int i = 0; i < kBlockElements; ++i) {
        const float scale = half_to_float(block.scale) * block.sub_scales[2 * s + i / 16];
        out[i] = scale * static_cast<float>(codes[i] - zero_point_of(DType::kQ6_K));
      }
    }
  }
}

}  // namespace

UnpackRow unpack_row_of(DType dtype) {
  switch (dtype) {
#define KVASIR_FORMAT(name, unpack_row) \
  case DType::name:                     \
    return unpack_row;
#include "quant/formats.def"
#undef KVASIR_FORMAT
  }
  return nullptr;
}

}  // namespace kvasir::quant
