// Rows of floats to int8 with outliers (kernels/activation.h), RMS-normalised first where a weight is given. A block of
// threads has a row, a warp takes 32 inputs at a time, an input a lane.
#include "backend/cuda/kernels/activations.h"
#include "backend/cuda/kernels/launchers.h"
#include "backend/cuda/kernels/row_sums.h"

namespace kvasir::cuda {
namespace {

constexpr int kWarps = 8;
constexpr int kThreads = kWarps * simt::kWarpSize;

// Functions of kernels/activation.h, which are host code there.
KVASIR_DEVICE float fourth_root(float x) { return simt::sqrt_rn(simt::sqrt_rn(x)); }
KVASIR_DEVICE float outlier_threshold(float sum_of_fourth_roots, std::int64_t num_blocks) {
  const float root = simt::div_rn(sum_of_fourth_roots, static_cast<float>(num_blocks));
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
  float* maxima;  // of each block of 32 inputs
  float* normed;  // the row after its norm
};

KVASIR_DEVICE RowState row_state(const QuantizeArgs& args) {
  const std::int64_t num_blocks = args.k / kActivationBlock;
  return {simt::shared<float>(0, 4), simt::shared<float>(16, num_blocks),
          simt::shared<float>(16 + 4 * num_blocks, args.norm_weight == nullptr ? 0 : args.k)};
}

// The largest of the lanes' magnitudes. A NaN or infinity comes out as one: their bits are the largest integers.
KVASIR_DEVICE float largest_of_warp(float x) {
  auto bits = static_cast<std::int32_t>(simt::bits_of(x) & 0x7fffffffu);
  for (int distance = simt::kWarpSize / 2; distance > 0; distance /= 2) {
    const std::int32_t other = simt::shuffle_xor(bits, distance);
    bits = other > bits ? other : bits;
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

// Fills maxima and the rest of the header.
KVASIR_DEVICE void measure_row(const RowState& state, const float* x, std::int64_t num_blocks) {
  for (std::int64_t b = simt::warp_index(); b < num_blocks; b += kWarps) {
    const float largest = largest_of_warp(simt::load(x + b * kActivationBlock + simt::lane_index()));
    if (simt::lane_index() == 0) simt::store(state.maxima + b, largest);
  }
  simt::sync_block();
  if (simt::thread_index() == 0) {
    float sum_of_roots = 0.0f;
    bool is_usual = true;
    for (std::int64_t b = 0; b < num_blocks; ++b) {
      const float largest = simt::load(state.maxima + b);
      is_usual = is_usual && largest <= kernels::kLargestInput;
      sum_of_roots = sum_of_roots + fourth_root(largest);
    }
    simt::store(state.header + 1, outlier_threshold(sum_of_roots, num_blocks));
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

// Writes a warp's part of a block.
KVASIR_DEVICE void store_block(const Column& to, std::int64_t b, float scale, int code, int outlier) {
  const int lane = simt::lane_index();
  const HalfSums sums = half_sums(code);
  const std::uint32_t lanes = simt::ballot(outlier != 0);
  ActivationBlock* block = to.blocks + b * to.width;
  simt::store(&block->q[lane], static_cast<std::int8_t>(code - (1 << kOutlierShift) * outlier));
  simt::store(&to.outliers[b * to.width].q[lane], static_cast<std::int8_t>(outlier));
  if (lane < to.num_flags) {
    std::uint32_t groups_of_4 = 0;
    for (int j = 0; j < kernels::kGroupsOf4PerBlock; ++j)
      groups_of_4 |= (lanes >> 4 * j & 0xfu) != 0 ? 1u << j : 0u;
    simt::store(to.outlier_groups + b * kTokensPerActivationTile + lane,
                static_cast<std::uint8_t>(lane == 0 ? groups_of_4 : 0));
  }
  if (lane == 0) {
    const std::int32_t sum = sums.low + sums.high;
    simt::store(&block->scale, scale);
    simt::store(&block->scaled_sum, scale * static_cast<float>(sum));
    simt::store(&block->offset, -128 * sum);
    simt::store(&block->offset_high, -128 * sums.high);
  }
}

KVASIR_DEVICE void quantize_block(const RowState& state, const Column& to, std::int64_t b, float x,
                                  float threshold) {
  const float largest = simt::load(state.maxima + b);
  float inlier = largest;
  if (largest > threshold) {  // alike in all lanes
    float of_group = simt::magnitude(x);
    for (int distance = 2; distance > 0; distance /= 2) {
      const float other = simt::shuffle_xor(of_group, distance);
      of_group = other > of_group ? other : of_group;
    }
    inlier = largest_of_warp(of_group <= threshold ? x : 0.0f);
  }
  const float scale = block_scale(inlier, largest);
  const int code = simt::round_to_int(x * inverse_of_scale(scale));
  store_block(to, b, scale, code, kernels::outlier_code(code));
}

KVASIR_KERNEL(kThreads) void quantize_kernel(QuantizeArgs args) {
  const std::int64_t token = simt::block_index().x, num_blocks = args.k / kActivationBlock;
  const RowState state = row_state(args);
  const float* x = args.x + token * args.x_stride;
  if (args.norm_weight != nullptr) x = normalise_row(args, state, x);
  measure_row(state, x, num_blocks);
  const float threshold = simt::load(state.header + 1);
  const bool is_usual = simt::load(state.header + 2) != 0.0f;
  const Column to = column_of(args, token);
  for (std::int64_t b = simt::warp_index(); b < num_blocks; b += kWarps) {
    if (is_usual) {
      quantize_block(state, to, b, simt::load(x + b * kActivationBlock + simt::lane_index()), threshold);
    } else {
      store_block(to, b, 0.0f, 0, 0);
    }
  }
  if (simt::thread_index() == 0) simt::store(args.is_usual + token, static_cast<std::uint8_t>(is_usual));
}

}  // namespace

void quantize(simt::Device& device, const QuantizeArgs& args) {
  const std::int64_t floats = 4 + args.k / kActivationBlock + (args.norm_weight == nullptr ? 0 : args.k);
  simt::launch<quantize_kernel>(device, {static_cast<std::uint32_t>(args.num_tokens)}, kThreads, 4 * floats,
                                args);
}

}  // namespace kvasir::cuda
