#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/pack.h"
#include "kernels/w8a8.h"
#include "quant/formats.h"

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
    span[(i / 4) * kGroupOf4Bytes + 4 * row + i % 4] = static_cast<std::uint8_t>(128 +
                                                                                 static_cast<int>(code));
  }
  std::memcpy(span + num_blocks * static_cast<std::int64_t>(sizeof(PackedBytes)) + 4 * row, &scale, 4);
}

template <class Format>
void pack_w8a8_group(const void* rows, std::int64_t row_bytes, int num_rows, std::int64_t k, void* packed) {
  std::memset(packed, 0, static_cast<std::size_t>(w8a8_group_bytes(k)));
  for (int row = 0; row < num_rows; ++row) {
    const char* bytes = static_cast<const char*>(rows) + row * row_bytes;
    for (std::int64_t s = 0; s < num_spans(k); ++s) {
      const int num_blocks = blocks_of_span(k, s);
      float weights[kSpanInputs];
      const std::int64_t first_block = s * kSpanInputs / Format::kBlockElements;
      Format::unpack_row(bytes + first_block * static_cast<std::int64_t>(sizeof(typename Format::Block)),
                         32 * num_blocks, weights);
      put_span(weights, num_blocks, row, static_cast<std::uint8_t*>(packed) + span_offset_bytes(s));
    }
  }
}

template <class Format>
FormatKernels make_w8a8_packing() {
  if constexpr (Format::kBlockElements == 1) {
    return packing_of(quant::kDTypeOf<Format>);
  } else {
    return {false, w8a8_group_bytes, pack_w8a8_group<Format>, nullptr};
  }
}

}  // namespace

FormatKernels w8a8_packing_of(DType dtype) {
  switch (dtype) {
#define KVASIR_FORMAT(id, Format) \
  case DType::id:                 \
    return make_w8a8_packing<quant::Format>();
#include "quant/formats.def"
#undef KVASIR_FORMAT
  }
  return {};
}

}  // namespace kvasir::kernels
