#include "kernels/split.h"

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

void pack_split_group(const void* rows, std::int64_t row_bytes, int num_rows, std::int64_t k, void* high,
                      void* low) {
  std::memset(high, 0, static_cast<std::size_t>(plane_group_bytes<PackedHighPlane>(k)));
  std::memset(low, 0, static_cast<std::size_t>(plane_group_bytes<PackedLowPlane>(k)));
  for (int row = 0; row < num_rows; ++row) {
    const char* bytes = static_cast<const char*>(rows) + row * row_bytes;
    for (std::int64_t b = 0; b < k / quant::kCodesOfBlock; ++b) {
      const auto block = quant::block_at<quant::Q8_0::Block>(bytes, b);
      std::uint8_t codes[quant::kCodesOfBlock];
      quant::Q8_0::codes_of(block, 0, codes);
      const int i = static_cast<int>(b % kBlocksPerSplitUnit);
      PackedHighPlane& unit = static_cast<PackedHighPlane*>(high)[b / kBlocksPerSplitUnit];
      PackedLowPlane& low_unit = static_cast<PackedLowPlane*>(low)[b / kBlocksPerSplitUnit];
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

// A quad of inputs, by place and magnitude.
struct QuadSize {
  std::int32_t index;  // 8 * block + quad
  double square;       // of its norm
};

std::int64_t split_input_bytes(std::int64_t k) {
  return static_cast<std::int64_t>(sizeof(SplitInputs)) + k / kActivationBlock * 4;
}

// One block of a quantised row.
struct InputBlock {
  const ActivationBlock& fine;
  const CoarseCodes& coarse;

  double square_of_quad(int quad) const {
    double sum = 0.0;
    for (int i = 4 * quad; i < 4 * quad + 4; ++i) {
      const double x = double{fine.scale} * (fine.q[i] + (coarse.q[i] << kCoarseShift));
      sum += x * x;
    }
    return sum;
  }
  // Of its norm, without the quads whose bits are set.
  double square_without(unsigned quads) const {
    double sum = 0.0;
    for (int quad = 0; quad < kPackedQuads; ++quad) {
      if ((quads >> quad & 1) == 0) sum += square_of_quad(quad);
    }
    return sum;
  }
};

// Puts a quad in its place among the largest so far, by falling size.
void insert_quad(const QuadSize& quad, QuadSize* largest, int& count) {
  if (count == kExactQuads && quad.square <= largest[count - 1].square) return;
  if (count < kExactQuads) ++count;
  int at = count - 1;
  for (; at > 0 && largest[at - 1].square < quad.square; --at) largest[at] = largest[at - 1];
  largest[at] = quad;
}

// The exact quads, by place, with the norm that each block loses by its own. block_at(b) is block b.
template <class BlockAt>
void set_exact_quads(QuadSize* largest, const BlockAt& block_at, SplitInputs& inputs) {
  std::sort(largest, largest + inputs.num_exact,
            [](const QuadSize& a, const QuadSize& b) { return a.index < b.index; });
  for (int begin = 0, end = 0; begin < inputs.num_exact; begin = end) {
    const std::int32_t b = largest[begin].index / kPackedQuads;
    unsigned quads = 0;
    for (; end < inputs.num_exact && largest[end].index / kPackedQuads == b; ++end) {
      const std::int32_t quad = largest[end].index % kPackedQuads;
      inputs.exact[end] = {.block = b, .quad = quad, .norm_drop = 0.0f};
      quads |= 1u << quad;
    }
    const InputBlock block = block_at(b);
    const double drop = std::sqrt(block.square_without(0)) - std::sqrt(block.square_without(quads));
    inputs.exact[begin].norm_drop = static_cast<float>(drop * (1.0 - 1e-6) / kLowNormUnits);
  }
}

void measure_split_inputs(const void* quantized, std::int64_t k, std::int32_t token, std::int32_t num_tokens,
                          void* measured) {
  auto& inputs = *static_cast<SplitInputs*>(measured);
  const std::int64_t column = token % kTokensPerActivationTile;
  const ConstActivationTile tile = activation_tile(quantized, k, token - column, num_tokens);
  const auto block_at = [&](std::int64_t b) {
    return InputBlock{tile.blocks[b * tile.width + column], tile.coarse[b * tile.width + column]};
  };
  const std::int64_t num_blocks = k / kActivationBlock;
  const double margin = 1.0 + rounding_margin(num_blocks);
  QuadSize largest[kExactQuads];
  inputs.num_exact = 0;
  for (std::int64_t b = 0; b < num_blocks; ++b) {
    const InputBlock block = block_at(b);
    double sum = 0.0;
    for (int quad = 0; quad < kPackedQuads; ++quad) {
      const double square = block.square_of_quad(quad);
      sum += square;
      insert_quad({static_cast<std::int32_t>(kPackedQuads * b + quad), square}, largest, inputs.num_exact);
    }
    inputs.norms()[b] = static_cast<float>(std::sqrt(sum) * margin / kLowNormUnits);
  }
  set_exact_quads(largest, block_at, inputs);
}

void prefetch_split_refine(const BoundArgs& args) {
  const auto& inputs = *static_cast<const SplitInputs*>(args.inputs);
  for (std::int64_t group = args.group_begin; group < args.group_end; ++group) {
    const SplitUnits units = split_units(args.weights, args.low_weights, args.k, group);
    for (int i = 0; i < inputs.num_exact; ++i) {
      const ExactQuad& exact = inputs.exact[i];
      const PackedLowPlane& unit = units.low[exact.block / kBlocksPerSplitUnit];
      __builtin_prefetch(unit.nibbles[exact.block % kBlocksPerSplitUnit][exact.quad % 4]);
    }
  }
}

}  // namespace

SplitKernels split_packing() {
  return {.high_group_bytes = plane_group_bytes<PackedHighPlane>,
          .low_group_bytes = plane_group_bytes<PackedLowPlane>,
          .pack_group = pack_split_group,
          .matmul = nullptr,
          .input_bytes = split_input_bytes,
          .measure_inputs = measure_split_inputs,
          .bound = nullptr,
          .prefetch_refine = prefetch_split_refine,
          .refine = nullptr,
          .refine_bytes = kExactQuads * kPackedQuadBytes};
}

}  // namespace kvasir::kernels
