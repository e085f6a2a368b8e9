// Rows of floats to int8 with outliers (kernels/activation.h), RMS-normalised first where a weight is given. A block of
// threads has a row. A warp takes a span at a time, the inputs that share a scale: 32 of them, or 256 in the fast mode.
#include "backend/cuda/kernels/activations.h"
#include "backend/cuda/kernels/launchers.h"
#include "backend/cuda/kernels/row_sums.h"
#include "kernels/w8a8.h"

namespace kvasir::cuda {
namespace {

constexpr int kWarps = 8;
constexpr int kThreads = kWarps * simt::kWarpSize;

// Functions of kernels/activation.h, which are host code there.
KVASIR_DEVICE float fourth_root(float x) { return simt::sqrt_rn(simt::sqrt_rn(x)); }
KVASIR_DEVICE float outlier_threshold(float sum_of_fourth_roots, std::int64_t num_spans) {
  const float root = simt::div_rn(sum_of_fourth_roots, static_cast<float>(num_spans));
  return kernels::kOutlierRatio * ((root * root) * (root * root));
}
KVASIR_DEVICE float block_scale(float inlier, float largest) {
  const float of_inlier = simt::div_rn(inlier, 127.0f),
              of_largest = simt::div_rn(largest, kernels::kLargestCode);
  if (simt::div_rn(largest, 127.0f) < kernels::kLeastScale) return 0.0f;
  const float scale = of_inlier > kernels::kLeastScale ? of_inlier : kernels::kLeastScale;
  return scale > of_largest ? scale : of_largest;
}
KVASIR_DEVICE float inverse_of_scale(float scale) { return scale > 0.0f ? simt::div_rn(1.0f, scale) : 0.0f; }

// Results of the first pass, in shared memory.
struct RowState {
  float* header;  // the norm's factor, the outlier threshold, 1 for a row that can be quantised
  float* maxima;  // of each span
  float* normed;  // the row after its norm
};

// Spans of kBlocks blocks, the last with what is left.
template <int kBlocks>
constexpr std::int64_t spans_of(std::int64_t k) {
  return (k / kActivationBlock + kBlocks - 1) / kBlocks;
}
struct BlockSpan {
  std::int64_t first;
  int num_blocks;
};
template <int kBlocks>
KVASIR_DEVICE BlockSpan span_of(std::int64_t k, std::int64_t s) {
  const std::int64_t left = k / kActivationBlock - s * kBlocks;
  return {s * kBlocks, static_cast<int>(left < kBlocks ? left : kBlocks)};
}

KVASIR_DEVICE RowState row_state(const QuantizeArgs& args, std::int64_t num_spans) {
  return {simt::shared<float>(0, 4), simt::shared<float>(16, num_spans),
          simt::shared<float>(16 + 4 * num_spans, args.norm_weight == nullptr ? 0 : args.k)};
}

KVASIR_DEVICE std::int32_t larger(std::int32_t a, std::int32_t b) { return a > b ? a : b; }

// The bits of |x|. As integers those of a NaN or infinity are the largest.
KVASIR_DEVICE std::int32_t magnitude_bits(float x) {
  return static_cast<std::int32_t>(simt::bits_of(x) & 0x7fffffffu);
}

// The largest of the lanes' magnitudes.
KVASIR_DEVICE float largest_of_warp(std::int32_t bits) {
  for (int distance = simt::kWarpSize / 2; distance > 0; distance /= 2) {
    bits = larger(bits, simt::shuffle_xor(bits, distance));
  }
  return simt::float_of_bits(static_cast<std::uint32_t>(bits));
}

// Sums of lanes 0 to 15 and 16 to 31.
struct HalfSums {
  std::int32_t low, high;
};
KVASIR_DEVICE HalfSums half_sums(std::int32_t x) {
  for (int distance = 8; distance > 0; distance /= 2) x += simt::shuffle_xor(x, distance);
  return {simt::shuffle(x, 0), simt::shuffle(x, simt::kWarpSize / 2)};
}

KVASIR_DEVICE const float* normalise_row(const QuantizeArgs& args, const RowState& state, const float* x) {
  if (simt::warp_index() == 0) {
    const float factor = rms_factor(x, args.norm_eps, args.k);
    if (simt::lane_index() == 0) simt::store(state.header, factor);
  }
  simt::sync_block();
  const float factor = simt::load(state.header);
  for (std::int64_t i = simt::thread_index(); i < args.k; i += kThreads) {
    simt::store(state.normed + i, (simt::load(x + i) * factor) * simt::load(args.norm_weight + i));
  }
  simt::sync_block();
  return state.normed;
}

// A lane's input of each block, 0 of a block that is not there.
template <int kBlocks>
KVASIR_DEVICE void load_inputs_of(const float* x, const BlockSpan& span, float (&inputs)[kBlocks]) {
  const float* of_lane = x + span.first * kActivationBlock + simt::lane_index();
  KVASIR_UNROLL
  for (int b = 0; b < kBlocks; ++b)
    inputs[b] = b < span.num_blocks ? simt::load(of_lane + b * kActivationBlock) : 0.0f;
}

// Fills maxima and the rest of the header.
template <int kBlocks>
KVASIR_DEVICE void measure_row(const RowState& state, const float* x, std::int64_t k) {
  const std::int64_t num_spans = spans_of<kBlocks>(k);
  for (std::int64_t s = simt::warp_index(); s < num_spans; s += kWarps) {
    float inputs[kBlocks];
    load_inputs_of(x, span_of<kBlocks>(k, s), inputs);
    std::int32_t bits = 0;
    KVASIR_UNROLL
    for (int b = 0; b < kBlocks; ++b) bits = larger(bits, magnitude_bits(inputs[b]));
    const float largest = largest_of_warp(bits);
    if (simt::lane_index() == 0) simt::store(state.maxima + s, largest);
  }
  simt::sync_block();
  if (simt::thread_index() == 0) {
    float sum_of_roots = 0.0f;
    bool is_usual = true;
    for (std::int64_t s = 0; s < num_spans; ++s) {
      const float largest = simt::load(state.maxima + s);
      is_usual = is_usual && largest <= kernels::kLargestInput;
      sum_of_roots = sum_of_roots + fourth_root(largest);
    }
    simt::store(state.header + 1, outlier_threshold(sum_of_roots, num_spans));
    simt::store(state.header + 2, is_usual ? 1.0f : 0.0f);
  }
  simt::sync_block();
}

// One token's column of its tile; the last one also keeps the flags of the columns that do not exist.
struct Column {
  ActivationBlock* blocks;
  OutlierCodes* outliers;
  std::uint8_t* outlier_groups;
  std::int64_t width;
  int num_flags;
};
KVASIR_DEVICE Column column_of(const QuantizeArgs& args, std::int64_t token) {
  const std::int64_t column = token % kTokensPerActivationTile;
  const TileView tile = tile_view(args.quantized, args.k, token - column, args.num_tokens);
  const bool is_last = column == tile.width - 1;
  return {const_cast<ActivationBlock*>(tile.blocks) + column,
          const_cast<OutlierCodes*>(tile.outliers) + column,
          const_cast<std::uint8_t*>(tile.outlier_groups) + column, tile.width,
          is_last ? static_cast<int>(kTokensPerActivationTile - column) : 1};
}

// Writes a warp's part of a block but for its terms. Returns the sums of its codes.
KVASIR_DEVICE HalfSums store_codes(const Column& to, std::int64_t b, int code) {
  const int lane = simt::lane_index(), outlier = kernels::outlier_code(code);
  const HalfSums sums = half_sums(code);
  const std::uint32_t lanes = simt::ballot(outlier != 0);
  simt::store(&to.blocks[b * to.width].q[lane],
              static_cast<std::int8_t>(code - (1 << kOutlierShift) * outlier));
  simt::store(&to.outliers[b * to.width].q[lane], static_cast<std::int8_t>(outlier));
  if (lane < to.num_flags) {
    std::uint32_t groups_of_4 = 0;
    for (int j = 0; j < kernels::kGroupsOf4PerBlock; ++j)
      groups_of_4 |= (lanes >> 4 * j & 0xfu) != 0 ? 1u << j : 0u;
    simt::store(to.outlier_groups + b * kTokensPerActivationTile + lane,
                static_cast<std::uint8_t>(lane == 0 ? groups_of_4 : 0));
  }
  return sums;
}

KVASIR_DEVICE void store_terms(ActivationBlock* block, float scale, const HalfSums& sums,
                               std::int32_t offset) {
  if (simt::lane_index() != 0) return;
  simt::store(&block->scale, scale);
  simt::store(&block->scaled_sum, scale * static_cast<float>(sums.low + sums.high));
  simt::store(&block->offset, offset);
  simt::store(&block->offset_high, -128 * sums.high);
}

// The largest magnitude but for the groups of 4 inputs that have a larger one than the threshold.
template <int kBlocks>
KVASIR_DEVICE float largest_inlier(const float (&inputs)[kBlocks], float threshold) {
  std::int32_t bits = 0;
  KVASIR_UNROLL
  for (int b = 0; b < kBlocks; ++b) {
    float of_group = simt::magnitude(inputs[b]);
    for (int distance = 2; distance > 0; distance /= 2) {
      const float other = simt::shuffle_xor(of_group, distance);
      of_group = other > of_group ? other : of_group;
    }
    bits = larger(bits, of_group <= threshold ? magnitude_bits(inputs[b]) : 0);
  }
  return largest_of_warp(bits);
}

// The first block has the offsets of all.
template <int kBlocks>
KVASIR_DEVICE void store_span(const Column& to, const BlockSpan& span, const float (&inputs)[kBlocks],
                              float scale) {
  const float inverse = inverse_of_scale(scale);
  std::int32_t offset = 0;
  KVASIR_UNROLL
  for (int b = kBlocks - 1; b >= 0; --b) {
    if (b >= span.num_blocks) continue;
    const HalfSums sums = store_codes(to, span.first + b, simt::round_to_int(inputs[b] * inverse));
    offset += -128 * (sums.low + sums.high);
    store_terms(to.blocks + (span.first + b) * to.width, scale, sums, b == 0 ? offset : 0);
  }
}

template <int kBlocks>
KVASIR_DEVICE void quantize_row(const Column& to, const RowState& state, const float* x, std::int64_t k) {
  const float threshold = simt::load(state.header + 1);
  const bool is_usual = simt::load(state.header + 2) != 0.0f;
  for (std::int64_t s = simt::warp_index(); s < spans_of<kBlocks>(k); s += kWarps) {
    const BlockSpan span = span_of<kBlocks>(k, s);
    float inputs[kBlocks] = {};
    float scale = 0.0f;
    if (is_usual) {
      load_inputs_of(x, span, inputs);
      const float largest = simt::load(state.maxima + s);
      const float inlier = largest > threshold ? largest_inlier(inputs, threshold) : largest;
      scale = block_scale(inlier, largest);
    }
    store_span(to, span, inputs, scale);
  }
}

template <int kBlocks>
KVASIR_KERNEL(kThreads)
void quantize_kernel(QuantizeArgs args) {
  const std::int64_t token = simt::block_index().x;
  const RowState state = row_state(args, spans_of<kBlocks>(args.k));
  const float* x = args.x + token * args.x_stride;
  if (args.norm_weight != nullptr) x = normalise_row(args, state, x);
  measure_row<kBlocks>(state, x, args.k);
  quantize_row<kBlocks>(column_of(args, token), state, x, args.k);
  const bool is_usual = simt::load(state.header + 2) != 0.0f;
  if (simt::thread_index() == 0) simt::store(args.is_usual + token, static_cast<std::uint8_t>(is_usual));
}

template <int kBlocks>
void launch_quantize(simt::Device& device, const QuantizeArgs& args) {
  const std::int64_t floats = 4 + spans_of<kBlocks>(args.k) + (args.norm_weight == nullptr ? 0 : args.k);
  simt::launch<quantize_kernel<kBlocks>>(device, {static_cast<std::uint32_t>(args.num_tokens)}, kThreads,
                                         4 * floats, args);
}

}  // namespace

void quantize(simt::Device& device, const QuantizeArgs& args) {
  if (args.w8a8) return launch_quantize<kernels::kBlocksPerSpan>(device, args);
  launch_quantize<1>(device, args);
}

}  // namespace kvasir::cuda
