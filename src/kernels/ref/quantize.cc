// Quantising an activation row: the definition that the other instruction sets match bit for bit.
#include <cmath>

#include "kernels/activation.h"
#include "kernels/matmul_kernels.h"
#include "kernels/wide.h"

namespace kvasir::kernels::ref {
namespace {

// Codes of 32 inputs at a scale; `left_over`, if wanted, is what their rounding left.
ActivationBlock quantize_block(const float* x, float scale, float* left_over) {
  ActivationBlock block;
  block.scale = scale;
  const float inverse = inverse_of_scale(scale);
  int sum = 0, sum_high = 0;
  for (int i = 0; i < kActivationBlock; ++i) {
    const int q = static_cast<int>(std::nearbyint(x[i] * inverse));
    if (left_over != nullptr) left_over[i] = std::fma(-scale, static_cast<float>(q), x[i]);
    block.q[i] = static_cast<std::int8_t>(q);
    sum += q;
    if (i >= 16) sum_high += q;
  }
  block.scaled_sum = block.scale * static_cast<float>(sum);
  block.offset = -128 * sum;
  block.offset_high = -128 * sum_high;
  return block;
}

// The largest magnitude of 32 inputs; infinity when one of them is a NaN.
float largest_magnitude(const float* x) {
  float amax = 0.0f;
  for (int i = 0; i < kActivationBlock; ++i) {
    if (std::isnan(x[i])) return INFINITY;
    amax = std::fmax(amax, std::fabs(x[i]));
  }
  return amax;
}

}  // namespace

bool quantize_row(const float* x, std::int64_t k, std::int32_t token, std::int32_t num_tokens,
                  void* quantized) {
  const ActivationRow row = activation_row(quantized, k, token, num_tokens);
  const std::int64_t num_blocks = k / kActivationBlock;
  float sum_of_maxima = 0.0f;
  for (std::int64_t b = 0; b < num_blocks; ++b) {
    const float amax = largest_magnitude(x + b * kActivationBlock);
    if (amax > kLargestInput) {
      zero_row(row, num_blocks);
      return false;
    }
    sum_of_maxima += amax;
  }
  const float threshold = outlier_threshold(sum_of_maxima, num_blocks);
  for (std::int64_t b = 0; b < num_blocks; ++b) {
    const float* inputs = x + b * kActivationBlock;
    const float amax = largest_magnitude(inputs);
    const float scale = activation_scale(amax);
    float left_over[kActivationBlock];
    row.block(b) = quantize_block(inputs, scale, left_over);
    const bool is_outlier = amax > threshold;
    row.set_outlier(b, is_outlier);
    row.residual(b) = is_outlier ? quantize_block(left_over, scale_or_zero(scale * kResidualScale), nullptr)
                                 : ActivationBlock{};
  }
  return true;
}

bool quantize_row_wide(const float* x, std::int64_t k, std::int32_t token, std::int32_t num_tokens,
                       void* quantized) {
  const ActivationRow row = activation_row(quantized, k, token, num_tokens);
  const auto span_max = [&](std::int64_t s) {
    float amax = 0.0f;
    for (int b = 0; b < blocks_of_span(k, s); ++b) {
      amax = std::fmax(amax, largest_magnitude(x + (s * kBlocksPerSpan + b) * kActivationBlock));
    }
    return amax;
  };
  float sum_of_maxima = 0.0f;
  for (std::int64_t s = 0; s < num_spans(k); ++s) {
    const float amax = span_max(s);
    if (amax > kLargestInput) {
      zero_row(row, k / kActivationBlock);
      return false;
    }
    sum_of_maxima += amax;
  }
  const float threshold = outlier_threshold(sum_of_maxima, num_spans(k));
  for (std::int64_t s = 0; s < num_spans(k); ++s) {
    const float amax = span_max(s);
    const float scale = activation_scale(amax);
    const bool is_outlier = amax > threshold;
    const float residual_scale = is_outlier ? scale_or_zero(scale * kResidualScale) : 0.0f;
    const std::int64_t begin = s * kBlocksPerSpan;
    for (std::int64_t b = begin; b < begin + blocks_of_span(k, s); ++b) {
      float left_over[kActivationBlock];
      row.block(b) = quantize_block(x + b * kActivationBlock, scale, left_over);
      row.residual(b) = quantize_block(left_over, residual_scale, nullptr);
      row.set_outlier(b, is_outlier);
    }
    gather_span_offsets(&row.block(begin), row.width, blocks_of_span(k, s));
    gather_span_offsets(&row.residual(begin), row.width, blocks_of_span(k, s));
  }
  return true;
}

}  // namespace kvasir::kernels::ref
