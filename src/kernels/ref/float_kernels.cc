// Scalar float kernels: the definitions, written to be read, that every other instruction set is checked
// against.
#include <cmath>
#include <limits>

#include "base/half.h"
#include "kernels/ref/kernels.h"
#include "kernels/ref/kv_cell.h"

namespace kvasir::kernels::ref {

namespace {

float norm_factor(const float* x, float eps, std::int64_t n) {
  double sum_of_squares = 0.0;
  for (std::int64_t i = 0; i < n; ++i) sum_of_squares += static_cast<double>(x[i]) * x[i];
  const float mean = static_cast<float>(sum_of_squares / static_cast<double>(n));
  if (!std::isfinite(mean)) return std::numeric_limits<float>::quiet_NaN();
  return 1.0f / std::sqrt(mean + eps);
}

float factor_of(const float* up, std::int64_t i) { return up == nullptr ? 1.0f : up[i]; }

}  // namespace

void rms_norm(const float* x, const float* weight, float eps, std::int64_t n, float* out) {
  const float factor = norm_factor(x, eps, n);
  for (std::int64_t i = 0; i < n; ++i) out[i] = x[i] * factor * weight[i];
}

void rms_norm_add(const float* x, const float* weight, float eps, std::int64_t n, float* sum) {
  const float factor = norm_factor(x, eps, n);
  for (std::int64_t i = 0; i < n; ++i) sum[i] += x[i] * factor * weight[i];
}

void layer_norm(const float* x, const float* weight, const float* bias, float eps, std::int64_t n,
                float* out) {
  double sum = 0.0, squares = 0.0;
  for (std::int64_t i = 0; i < n; ++i) sum += static_cast<double>(x[i]);
  const double mean = sum / static_cast<double>(n);
  for (std::int64_t i = 0; i < n; ++i) squares += (x[i] - mean) * (x[i] - mean);
  const bool is_finite = squares < static_cast<double>(std::numeric_limits<float>::max());
  const double factor = is_finite ? 1.0 / std::sqrt(squares / static_cast<double>(n) + eps)
                                  : std::numeric_limits<double>::quiet_NaN();
  for (std::int64_t i = 0; i < n; ++i) {
    out[i] = static_cast<float>((x[i] - mean) * factor * weight[i] + bias[i]);
  }
}

void rope(float* head, const float* cos, const float* sin, std::int32_t rotary_dim, RopeStyle style) {
  const std::int32_t half = rotary_dim / 2;
  for (std::int32_t i = 0; i < half; ++i) {
    float& a = head[style == RopeStyle::kInterleaved ? 2 * i : i];
    float& b = head[style == RopeStyle::kInterleaved ? 2 * i + 1 : i + half];
    const float rotated_a = std::fma(a, cos[i], -(b * sin[i]));
    const float rotated_b = std::fma(b, cos[i], a * sin[i]);
    a = rotated_a;
    b = rotated_b;
  }
}

void silu_mul(const float* gate, const float* up, std::int64_t n, float* out) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = gate[i] / (1.0f + std::exp(-gate[i])) * factor_of(up, i);
}

void gelu_tanh_mul(const float* gate, const float* up, std::int64_t n, float* out) {
  for (std::int64_t i = 0; i < n; ++i) {
    const double x = gate[i];
    const double gelu = 0.5 * x * (1.0 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
    out[i] = static_cast<float>(gelu) * factor_of(up, i);
  }
}

void gelu_erf_mul(const float* gate, const float* up, std::int64_t n, float* out) {
  for (std::int64_t i = 0; i < n; ++i) {
    const double x = gate[i];
    out[i] = static_cast<float>(0.5 * x * std::erfc(-x * 0.7071067811865476)) * factor_of(up, i);
  }
}

void swiglu_oai(const float* gate, const float* up, std::int64_t n, float* out) {
  for (std::int64_t i = 0; i < n; ++i) {
    const double g = gate[i] > 7.0f ? 7.0 : gate[i];
    const double u = up[i] > 7.0f ? 7.0 : up[i] < -7.0f ? -7.0 : up[i];
    out[i] = static_cast<float>(g / (1.0 + std::exp(-1.702 * g)) * (u + 1.0));
  }
}

void add(const float* a, const float* b, std::int64_t n, float* out) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = a[i] + b[i];
}

void scale(const float* x, float factor, std::int64_t n, float* out) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = x[i] * factor;
}

void add_scaled(const float* x, float factor, std::int64_t n, float* sum) {
  for (std::int64_t i = 0; i < n; ++i) sum[i] = std::fma(x[i], factor, sum[i]);
}

void soft_cap(const float* x, float cap, std::int64_t n, float* out) {
  for (std::int64_t i = 0; i < n; ++i)
    out[i] = static_cast<float>(cap * std::tanh(static_cast<double>(x[i]) / cap));
}

bool write_kv(const KvWriteArgs& args) {
  bool are_finite = true;
  std::byte* values = args.cell + kv::key_bytes(args.format, args.head_dim);
  if (args.format == KvFormat::kQ12) {
    const bool is_key_finite = write_row_12(args.k, true, args.head_dim, args.slot, args.cell);
    return write_row_12(args.v, false, args.head_dim, args.slot, values) && is_key_finite;
  }
  for (std::int32_t d = 0; d < args.head_dim; ++d) {
    const std::int64_t k_index = static_cast<std::int64_t>(d) * kTokensPerCell + args.slot;
    const std::int64_t v_index = static_cast<std::int64_t>(args.slot) * args.head_dim + d;
    if (args.format == KvFormat::kF16) {
      const std::uint16_t k = float_to_half(args.k[d]), v = float_to_half(args.v[d]);
      reinterpret_cast<std::uint16_t*>(args.cell)[k_index] = k;
      reinterpret_cast<std::uint16_t*>(values)[v_index] = v;
      are_finite = are_finite && std::isfinite(half_to_float(k)) && std::isfinite(half_to_float(v));
    } else {
      reinterpret_cast<float*>(args.cell)[k_index] = args.k[d];
      reinterpret_cast<float*>(values)[v_index] = args.v[d];
      are_finite = are_finite && std::isfinite(args.k[d]) && std::isfinite(args.v[d]);
    }
  }
  return are_finite;
}

void tile_maxima(const float* x, std::int64_t n, float* maxima) {
  for (std::int64_t i = 0; i < n; ++i) {
    float& largest = maxima[i / kLogitsPerTile];
    if (i % kLogitsPerTile == 0) largest = -std::numeric_limits<float>::infinity();
    if (std::isnan(x[i]) || x[i] > largest) largest = x[i];  // nothing is above a NaN
  }
}

double sum_exp(const float* x, float max, std::int64_t n) {
  double total = 0.0;
  for (std::int64_t i = 0; i < n; ++i) total += std::exp(static_cast<double>(x[i] - max));
  return total;
}

}  // namespace kvasir::kernels::ref
