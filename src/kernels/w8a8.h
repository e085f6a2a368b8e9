// The fast mode's format: weights of every block format requantised to bytes with one scale per row and span
// of 256 inputs, and activations with one scale per token and span. A sum then meets a float once in 64 steps
// instead of once in 8, which is what the mode is for; what it costs in closeness is in README.
//
// A group of 16 rows is a sequence of spans: the blocks' codes in the order of packed.h (PackedBytes), then
// float scales[16]. The last span has the blocks that are left.
//
// An activation row lies as activation.h says. All blocks of a span have its scale, and the first one's
// `offset` is that of the whole span. The outlier threshold is made of the largest inputs of the row's spans.
#pragma once

#include <cstdint>

#include "kernels/activation.h"
#include "kernels/packed.h"

namespace kvasir::kernels {

inline constexpr int kBlocksPerSpan = 8;
inline constexpr std::int64_t kSpanScaleBytes = kPackedRows * 4;

constexpr std::int64_t num_spans(std::int64_t k) { return (k / 32 + kBlocksPerSpan - 1) / kBlocksPerSpan; }

// Blocks of span s.
constexpr int blocks_of_span(std::int64_t k, std::int64_t s) {
  const std::int64_t left = k / 32 - s * kBlocksPerSpan;
  return static_cast<int>(left < kBlocksPerSpan ? left : kBlocksPerSpan);
}

// Where span s of a group begins.
constexpr std::int64_t span_offset_bytes(std::int64_t s) {
  return s * (kBlocksPerSpan * static_cast<std::int64_t>(sizeof(PackedBytes)) + kSpanScaleBytes);
}

constexpr std::int64_t w8a8_group_bytes(std::int64_t k) {
  return k / 32 * static_cast<std::int64_t>(sizeof(PackedBytes)) + num_spans(k) * kSpanScaleBytes;
}

// Moves the offsets of a span's blocks, `width` apart, to the first one.
inline void gather_span_offsets(ActivationBlock* blocks, std::int64_t width, int num_blocks) {
  for (int b = 1; b < num_blocks; ++b) {
    blocks[0].offset += blocks[b * width].offset;
    blocks[b * width].offset = 0;
  }
}

}  // namespace kvasir::kernels
