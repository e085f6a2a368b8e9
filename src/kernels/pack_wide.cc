#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/pack.h"
#include "kernels/wide.h"
#include "quant/format.h"

namespace kvasir::kernels {
namespace {

constexpr int kSpanInputs = 32 * kBlocksPerSpan;

// One row's part of a span: codes 128 + the nearest of weight / scale.
void put_span(const float* weights, int num_blocks, int row, std::uint8_t* span) {
  float amax = 0.0f;
  for (int i = 0; i < 32 * num_blocks; ++i) amax = std::max(amax, std::fabs(weights[i]));
  const float scale = amax / 127.0f;
  const float inverse = scale > 0.0f ? 1.0f / scale : 0.0f;
  for (int i = 0; i < 32 * num_blocks; ++i) {
    const float code = std::clamp(std::nearbyint(weights[i] * inverse), -127.0f, 127.0f);
    span[(i / 4) * kPackedQuadBytes + 4 * row + i % 4] =
        static_cast<std::uint8_t>(128 + static_cast<int>(code));
  }
  std::memcpy(span + num_blocks * static_cast<std::int64_t>(sizeof(PackedBytes)) + 4 * row, &scale, 4);
}

template <DType dtype>
void pack_wide_group(const void* rows, std::int64_t row_bytes, int num_rows, std::int64_t k, void* packed) {
  std::memset(packed, 0, static_cast<std::size_t>(wide_group_bytes(k)));
  for (int row = 0; row < num_rows; ++row) {
    const char* bytes = static_cast<const char*>(rows) + row * row_bytes;
    for (std::int64_t s = 0; s < num_spans(k); ++s) {
      const int num_blocks = blocks_of_span(k, s);
      float weights[kSpanInputs];
      quant::unpack_row_of(dtype)(bytes + kvasir::row_bytes(dtype, s * kSpanInputs), 32 * num_blocks,
                                  weights);
      put_span(weights, num_blocks, row, static_cast<std::uint8_t*>(packed) + span_offset_bytes(s));
    }
  }
}

template <DType dtype>
constexpr FormatKernels kWidePacking = {wide_group_bytes, pack_wide_group<dtype>, nullptr};

}  // namespace

FormatKernels wide_packing_of(DType dtype) {
  switch (dtype) {
    case DType::kF32:
    case DType::kF16:
    case DType::kBF16:
      return packing_of(dtype);
    case DType::kQ8_0:
      return kWidePacking<DType::kQ8_0>;
    case DType::kQ4_0:
      return kWidePacking<DType::kQ4_0>;
    case DType::kQ4_1:
      return kWidePacking<DType::kQ4_1>;
    case DType::kQ5_0:
      return kWidePacking<DType::kQ5_0>;
    case DType::kQ5_1:
      return kWidePacking<DType::kQ5_1>;
    case DType::kQ4_K:
      return kWidePacking<DType::kQ4_K>;
    case DType::kQ5_K:
      return kWidePacking<DType::kQ5_K>;
    case DType::kQ6_K:
      return kWidePacking<DType::kQ6_K>;
  }
  return {};
}

}  // namespace kvasir::kernels
