#include "kernels/nibble_planes.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/activation.h"
#include "quant/block.h"
#include "quant/formats.h"

namespace kvasir::kernels {
namespace {

template <class Plane>
std::int64_t plane_group_bytes(std::int64_t k) {
  return units_of<Plane>(k) * static_cast<std::int64_t>(sizeof(Plane));
}

void put_nibble(std::uint8_t nibble, int row, int i, PackedNibbles& nibbles) {
  std::uint8_t& both = nibbles[i / 4 % 4][4 * row + i % 4];
  both = static_cast<std::uint8_t>(both | nibble << (i < 16 ? 0 : 4));
}

// Codes of a block into the planes; returns ||low - 7.5||.
float put_codes(const std::uint8_t* codes, int row, PackedNibbles& high, PackedNibbles& low) {
  float sum = 0.0f;
  for (int i = 0; i < quant::kCodesOfBlock; ++i) {
    const auto low_nibble = static_cast<std::uint8_t>(codes[i] & 0x0f);
    put_nibble(codes[i] >> 4, row, i, high);
    put_nibble(low_nibble, row, i, low);
    const float from_middle = static_cast<float>(low_nibble) - kMiddleOfLow;
    sum += from_middle * from_middle;  // quarters: exact
  }
  return std::sqrt(sum);
}

void pack_nibble_planes(const void* rows, std::int64_t row_bytes, int num_rows, std::int64_t k, void* high,
                        void* low) {
  std::memset(high, 0, static_cast<std::size_t>(plane_group_bytes<PackedHighPlane>(k)));
  std::memset(low, 0, static_cast<std::size_t>(plane_group_bytes<PackedLowPlane>(k)));
  for (int row = 0; row < num_rows; ++row) {
    const char* bytes = static_cast<const char*>(rows) + row * row_bytes;
    for (std::int64_t b = 0; b < k / quant::kCodesOfBlock; ++b) {
      const auto block = quant::block_at<quant::Q8_0::Block>(bytes, b);
      std::uint8_t codes[quant::kCodesOfBlock];
      quant::Q8_0::codes_of(block, 0, codes);
      const int i = static_cast<int>(b % kBlocksPerNibblePlaneUnit);
      PackedHighPlane& unit = static_cast<PackedHighPlane*>(high)[b / kBlocksPerNibblePlaneUnit];
      PackedLowPlane& low_unit = static_cast<PackedLowPlane*>(low)[b / kBlocksPerNibblePlaneUnit];
      const float norm = put_codes(codes, row, unit.nibbles[i], low_unit.nibbles[i]);
      unit.low_norms[i][row] = static_cast<std::uint8_t>(std::ceil(norm * kLowNormUnits));
      unit.scales[i][row] = block.scale;
    }
  }
}

// Added to norms as a share of them, so that a bound also covers the roundings of the float sums on both
// sides of it. Those of a block's terms are below 13 * num_blocks * 2^-24 of ||w_b|| ||x_b||, and a row's
// norm is at most 256 times that of its low part, which is 0.5 sqrt(32) or more.
double rounding_margin(std::int64_t num_blocks) { return static_cast<double>(num_blocks) / 4096.0; }

// A group of 4 of inputs, by place and magnitude.
struct GroupOf4Size {
  std::int32_t index;  // 8 * block + number of the group
  double square;       // of its norm
};

std::int64_t bound_input_bytes(std::int64_t k) {
  return static_cast<std::int64_t>(sizeof(BoundInputs)) + k / kActivationBlock * 4;
}

// One block of a quantised row.
struct InputBlock {
  const ActivationBlock& block;
  const OutlierCodes& outliers;

  double square_of_group_of_4(int group_of_4) const {
    double sum = 0.0;
    for (int i = 4 * group_of_4; i < 4 * group_of_4 + 4; ++i) {
      const double x = double{block.scale} * (block.q[i] + (outliers.q[i] << kOutlierShift));
      sum += x * x;
    }
    return sum;
  }
  // The square of its norm, without the groups of 4 whose bits are set.
  double square_without(unsigned groups_of_4) const {
    double sum = 0.0;
    for (int group_of_4 = 0; group_of_4 < kGroupsOf4PerBlock; ++group_of_4) {
      if ((groups_of_4 >> group_of_4 & 1) == 0) sum += square_of_group_of_4(group_of_4);
    }
    return sum;
  }
};

// Puts a group of 4 in its place among the largest so far, by falling size.
void insert_group_of_4(const GroupOf4Size& group_of_4, GroupOf4Size* largest, int& count) {
  if (count == kExactGroupsOf4 && group_of_4.square <= largest[count - 1].square) return;
  if (count < kExactGroupsOf4) ++count;
  int at = count - 1;
  for (; at > 0 && largest[at - 1].square < group_of_4.square; --at) largest[at] = largest[at - 1];
  largest[at] = group_of_4;
}

// The exact groups of 4, by place, with the norm that each block loses by its own. block_at(b) is block b.
template <class BlockAt>
void set_exact_groups_of_4(GroupOf4Size* largest, const BlockAt& block_at, BoundInputs& inputs) {
  std::sort(largest, largest + inputs.num_exact,
            [](const GroupOf4Size& a, const GroupOf4Size& b) { return a.index < b.index; });
  for (int begin = 0, end = 0; begin < inputs.num_exact; begin = end) {
    const std::int32_t b = largest[begin].index / kGroupsOf4PerBlock;
    unsigned groups_of_4 = 0;
    for (; end < inputs.num_exact && largest[end].index / kGroupsOf4PerBlock == b; ++end) {
      const std::int32_t group_of_4 = largest[end].index % kGroupsOf4PerBlock;
      inputs.exact[end] = {.block = b, .group_of_4 = group_of_4, .norm_drop = 0.0f};
      groups_of_4 |= 1u << group_of_4;
    }
    const InputBlock block = block_at(b);
    const double drop = std::sqrt(block.square_without(0)) - std::sqrt(block.square_without(groups_of_4));
    inputs.exact[begin].norm_drop = static_cast<float>(drop * (1.0 - 1e-6) / kLowNormUnits);
  }
}

void measure_bound_inputs(const void* quantized, std::int64_t k, std::int32_t token, std::int32_t num_tokens,
                          void* measured) {
  auto& inputs = *static_cast<BoundInputs*>(measured);
  const std::int64_t column = token % kTokensPerActivationTile;
  const ConstActivationTile tile = activation_tile(quantized, k, token - column, num_tokens);
  const auto block_at = [&](std::int64_t b) {
    return InputBlock{tile.blocks[b * tile.width + column], tile.outliers[b * tile.width + column]};
  };
  const std::int64_t num_blocks = k / kActivationBlock;
  const double margin = 1.0 + rounding_margin(num_blocks);
  GroupOf4Size largest[kExactGroupsOf4];
  inputs.num_exact = 0;
  for (std::int64_t b = 0; b < num_blocks; ++b) {
    const InputBlock block = block_at(b);
    double sum = 0.0;
    for (int group_of_4 = 0; group_of_4 < kGroupsOf4PerBlock; ++group_of_4) {
      const double square = block.square_of_group_of_4(group_of_4);
      sum += square;
      insert_group_of_4({static_cast<std::int32_t>(kGroupsOf4PerBlock * b + group_of_4), square}, largest,
                        inputs.num_exact);
    }
    inputs.norms()[b] = static_cast<float>(std::sqrt(sum) * margin / kLowNormUnits);
  }
  set_exact_groups_of_4(largest, block_at, inputs);
}

void prefetch_argmax_refine(const BoundArgs& args) {
  const auto& inputs = *static_cast<const BoundInputs*>(args.inputs);
  for (std::int64_t group = args.group_begin; group < args.group_end; ++group) {
    const NibblePlaneUnits units = nibble_plane_units(args.weights, args.low_weights, args.k, group);
    for (int i = 0; i < inputs.num_exact; ++i) {
      const ExactGroupOf4& exact = inputs.exact[i];
      const PackedLowPlane& unit = units.low[exact.block / kBlocksPerNibblePlaneUnit];
      __builtin_prefetch(unit.nibbles[exact.block % kBlocksPerNibblePlaneUnit][exact.group_of_4 % 4]);
    }
  }
}

}  // namespace

NibblePlaneKernels nibble_plane_packing() {
  return {.high_group_bytes = plane_group_bytes<PackedHighPlane>,
          .low_group_bytes = plane_group_bytes<PackedLowPlane>,
          .pack_group = pack_nibble_planes,
          .matmul = nullptr,
          .input_bytes = bound_input_bytes,
          .measure_inputs = measure_bound_inputs,
          .bound = nullptr,
          .prefetch_refine = prefetch_argmax_refine,
          .refine = nullptr,
          .refine_bytes = kExactGroupsOf4 * kGroupOf4Bytes};
}

}  // namespace kvasir::kernels
