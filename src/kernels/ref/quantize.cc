// Quantising an activation row: the definition that the other instruction sets match bit for bit.
#include <algorithm>
#include <cmath>

#include "kernels/activation.h"
#include "kernels/ref/kernels.h"
#include "kernels/w8a8.h"

namespace kvasir::kernels::ref {
namespace {

// Writes the codes of 32 inputs at a scale.
void quantize_block(const float* x, float scale, const ActivationRow& row, std::int64_t b) {
  ActivationBlock& block = row.block(b);
  block.scale = scale;
  const float inverse = inverse_of_scale(scale);
  int sum = 0, sum_high = 0, outlier_groups = 0;
  for (int i = 0; i < kActivationBlock; ++i) {
    const int code = static_cast<int>(std::nearbyint(x[i] * inverse));
    const int outliers = outlier_code(code);
    row.outliers(b).q[i] = static_cast<std::int8_t>(outliers);
    block.q[i] = static_cast<std::int8_t>(code - (1 << kOutlierShift) * outliers);
    if (outliers != 0) outlier_groups |= 1 << i / 4;
    sum += code;
    if (i >= 16) sum_high += code;
  }
  row.set_outlier_groups(b, outlier_groups);
  block.scaled_sum = block.scale * static_cast<float>(sum);
  block.offset = -128 * sum;
  block.offset_high = -128 * sum_high;
}

// The largest magnitude of some inputs; infinity when one of them is a NaN.
float largest_magnitude(const float* x, std::int64_t num_inputs) {
  float largest = 0.0f;
  for (std::int64_t i = 0; i < num_inputs; ++i) {
    if (std::isnan(x[i])) return INFINITY;
    largest = std::fmax(largest, std::fabs(x[i]));
  }
  return largest;
}

// The same without the groups of 4 that have a larger one than the threshold.
float largest_inlier(const float* x, std::int64_t num_inputs, float threshold) {
  float largest = 0.0f;
  for (std::int64_t i = 0; i < num_inputs; i += 4) {
    const float of_group_of_4 = largest_magnitude(x + i, 4);
    if (of_group_of_4 <= threshold) largest = std::fmax(largest, of_group_of_4);
  }
  return largest;
}

// Inputs that share a scale.
struct Span {
  std::int64_t begin, num_blocks;
  const float* inputs(const float* x) const { return x + begin * kActivationBlock; }
  std::int64_t num_inputs() const { return num_blocks * kActivationBlock; }
};

// Spans of blocks_per_span blocks, the last with what is left.
bool quantize_spans(const float* x, std::int64_t num_blocks, std::int64_t blocks_per_span,
                    const ActivationRow& row) {
  const std::int64_t num_spans = (num_blocks + blocks_per_span - 1) / blocks_per_span;
  const auto span = [&](std::int64_t s) {
    const std::int64_t begin = s * blocks_per_span;
    return Span{begin, std::min(blocks_per_span, num_blocks - begin)};
  };
  float sum_of_roots = 0.0f;
  for (std::int64_t s = 0; s < num_spans; ++s) {
    const float largest = largest_magnitude(span(s).inputs(x), span(s).num_inputs());
    if (largest > kLargestInput) {
      zero_row(row, num_blocks);
      return false;
    }
    sum_of_roots += fourth_root(largest);
  }
  const float threshold = outlier_threshold(sum_of_roots, num_spans);
  for (std::int64_t s = 0; s < num_spans; ++s) {
    const float* inputs = span(s).inputs(x);
    const float scale = block_scale(largest_inlier(inputs, span(s).num_inputs(), threshold),
                                    largest_magnitude(inputs, span(s).num_inputs()));
    for (std::int64_t b = 0; b < span(s).num_blocks; ++b) {
      quantize_block(inputs + b * kActivationBlock, scale, row, span(s).begin + b);
    }
  }
  return true;
}

}  // namespace

bool quantize_row(const float* x, std::int64_t k, std::int32_t token, std::int32_t num_tokens,
                  void* quantized) {
  return quantize_spans(x, k / kActivationBlock, 1, activation_row(quantized, k, token, num_tokens));
}

bool quantize_row_w8a8(const float* x, std::int64_t k, std::int32_t token, std::int32_t num_tokens,
                       void* quantized) {
  const ActivationRow row = activation_row(quantized, k, token, num_tokens);
  if (!quantize_spans(x, k / kActivationBlock, kBlocksPerSpan, row)) return false;
  for (std::int64_t s = 0; s < num_spans(k); ++s) {
    gather_span_offsets(&row.block(s * kBlocksPerSpan), row.width, blocks_of_span(k, s));
  }
  return true;
}

}  // namespace kvasir::kernels::ref
