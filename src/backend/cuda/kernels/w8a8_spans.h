// Spans of 256 inputs of the fast mode's weights (kernels/w8a8.h). Their codes are read and decoded as those of other
// units (codes.h).
#pragma once

#include <cstdint>

#include "backend/cuda/kernels/codes.h"
#include "backend/cuda/simt/simt.h"
#include "kernels/w8a8.h"

namespace kvasir::cuda {

using kernels::kBlocksPerSpan;

// The last span of a row may have fewer blocks.
struct W8a8Span {
  kernels::PackedBytes codes[kBlocksPerSpan];
};

KVASIR_DEVICE const W8a8Span* span_at(const void* weights, std::int64_t k, std::int64_t group,
                                      std::int64_t s) {
  const auto* bytes = static_cast<const char*>(weights) + group * kernels::w8a8_group_bytes(k);
  return reinterpret_cast<const W8a8Span*>(bytes + kernels::span_offset_bytes(s));
}

// The scales of 16 rows, behind the blocks that are there.
KVASIR_DEVICE const float* span_scales(const W8a8Span* span, int num_blocks) {
  return reinterpret_cast<const float*>(span->codes + num_blocks);
}

}  // namespace kvasir::cuda
