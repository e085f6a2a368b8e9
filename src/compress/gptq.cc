#include "compress/gptq.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "base/check.h"
#include "compress/inverse_factor.h"
#include "quant/fit/fitted_format.h"

namespace kvasir::compress {
namespace {

constexpr std::int64_t kColumnsAtOnce = 64;  // whose errors reach the others together
constexpr std::int64_t kRowsOfTask = 8;

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define KVASIR_GPTQ_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define KVASIR_GPTQ_CLONES
#endif

KVASIR_GPTQ_CLONES void subtract_scaled(const float* x, float factor, std::int64_t count, float* out) {
  for (std::int64_t i = 0; i < count; ++i) out[i] -= factor * x[i];
}

// out[row] -= the sum over columns of errors[row][c] factor[c], for a few rows at a time: each row of the factor is read
// once for all of them.
KVASIR_GPTQ_CLONES void spread_errors(const float* errors, const float* factor, std::int64_t factor_stride, std::int64_t num_columns,
                                      std::int64_t num_rows, std::int64_t count, float* out, std::int64_t out_stride) {
  for (std::int64_t c = 0; c < num_columns; ++c) {
    const float* of_column = factor + c * factor_stride;
    for (std::int64_t row = 0; row < num_rows; ++row) {
      const float error = errors[row * kColumnsAtOnce + c];
      float* to = out + row * out_stride;
      for (std::int64_t i = 0; i < count; ++i) to[i] -= error * of_column[i];
    }
  }
}

KVASIR_GPTQ_CLONES double dot(const float* a, const float* b, std::int64_t count) {
  constexpr std::int64_t kLanes = 16;
  float sums[kLanes] = {};
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (std::int64_t lane = 0; lane < kLanes; ++lane) sums[lane] += a[i + lane] * b[i + lane];
  }
  double sum = 0.0;
  for (const float lane : sums) sum += double{lane};
  for (; i < count; ++i) sum += double{a[i]} * b[i];
  return sum;
}

// The nearest of ascending levels: an index.
class NearestLevel {
 public:
  explicit NearestLevel(std::span<const float> levels) : levels_(levels) {
    is_uniform_ = true;
    for (std::size_t i = 1; i < levels.size(); ++i) is_uniform_ = is_uniform_ && levels[i] - levels[i - 1] == 1.0f;
  }
  int operator()(float value) const {
    const auto most = static_cast<int>(levels_.size()) - 1;
    if (is_uniform_) {
      return static_cast<int>(std::nearbyint(std::clamp(value - levels_.front(), 0.0f, static_cast<float>(most))));
    }
    int index = 0;
    while (index < most && value > 0.5f * (levels_[static_cast<std::size_t>(index)] + levels_[static_cast<std::size_t>(index) + 1])) ++index;
    return index;
  }

 private:
  std::span<const float> levels_;
  bool is_uniform_ = false;
};

class RowEncoder {
 public:
  RowEncoder(DType type, const InputGeometry& geometry)
      : type_(type), geometry_(geometry), format_(*quant::grid_format(type)), nearest_(format_.levels()), width_(geometry.width) {}

  // A few rows, [num_rows, width]; `losses`: of each, of what was written and of the nearest codes.
  void encode(const float* x, std::int64_t num_rows, std::byte* out, GptqResult* losses) {
    const std::int64_t bytes = row_bytes(type_, width_);
    const auto num_subs = static_cast<std::size_t>(width_ / format_.sub_elements());
    grids_.resize(static_cast<std::size_t>(num_rows) * num_subs);
    open_.resize(static_cast<std::size_t>(num_rows * width_));
    codes_.resize(open_.size());
    errors_.assign(static_cast<std::size_t>(kRowsOfTask * kColumnsAtOnce), 0.0f);
    for (std::int64_t row = 0; row < num_rows; ++row) {
      std::byte* const of_row = out + row * bytes;
      format_.fit(x + row * width_, geometry_.mean_squares.data(), width_, of_row);
      format_.read_grid(of_row, width_, grids_.data() + static_cast<std::size_t>(row) * num_subs);
      for (std::int64_t c = 0; c < width_; ++c) {
        open_[static_cast<std::size_t>(row * width_ + c)] = x[row * width_ + geometry_.order[static_cast<std::size_t>(c)]];
      }
    }
    walk(num_rows, num_subs);
    keep_better(x, num_rows, out, losses);
  }

 private:
  void walk(std::int64_t num_rows, std::size_t num_subs) {
    for (std::int64_t begin = 0; begin < width_; begin += kColumnsAtOnce) {
      const std::int64_t end = std::min(width_, begin + kColumnsAtOnce);
      for (std::int64_t row = 0; row < num_rows; ++row) {
        const quant::SubGrid* grid = grids_.data() + static_cast<std::size_t>(row) * num_subs;
        float* const open = open_.data() + row * width_;
        for (std::int64_t c = begin; c < end; ++c) {
          const std::int32_t column = geometry_.order[static_cast<std::size_t>(c)];
          const quant::SubGrid& of = grid[column / format_.sub_elements()];
          const int code = of.scale != 0.0f ? nearest_((open[c] - of.offset) / of.scale) : nearest_(0.0f);
          const float value = of.scale * format_.levels()[static_cast<std::size_t>(code)] + of.offset;
          const float* factor = geometry_.factor.data() + c * width_;
          const float error = (open[c] - value) / factor[c];
          codes_[static_cast<std::size_t>(row * width_ + column)] = static_cast<std::uint8_t>(code);
          errors_[static_cast<std::size_t>(row * kColumnsAtOnce + c - begin)] = error;
          subtract_scaled(factor + c + 1, error, end - c - 1, open + c + 1);
        }
      }
      spread_errors(errors_.data(), geometry_.factor.data() + begin * width_ + end, width_, end - begin, num_rows, width_ - end,
                    open_.data() + end, width_);
    }
  }

  // Keeps each row's corrected codes where they lose less than the nearest ones: e^T H e of both, of all rows together, so
  // that a row of H is read once for them.
  void keep_better(const float* x, std::int64_t num_rows, std::byte* out, GptqResult* losses) {
    const std::int64_t bytes = row_bytes(type_, width_);
    corrected_.assign(out, out + num_rows * bytes);
    differences_.resize(static_cast<std::size_t>(2 * num_rows * width_));
    for (std::int64_t row = 0; row < num_rows; ++row) {
      format_.put_codes(codes_.data() + row * width_, width_, corrected_.data() + row * bytes);
      difference(x + row * width_, out + row * bytes, differences_.data() + 2 * row * width_);
      difference(x + row * width_, corrected_.data() + row * bytes, differences_.data() + (2 * row + 1) * width_);
    }
    double lost[2 * kRowsOfTask] = {};
    for (std::int64_t i = 0; i < width_; ++i) {
      const float* products = geometry_.products.data() + i * width_;
      for (std::int64_t k = 0; k < 2 * num_rows; ++k) {
        const float* of = differences_.data() + k * width_;
        lost[k] += double{of[i]} * dot(products, of, width_);
      }
    }
    for (std::int64_t row = 0; row < num_rows; ++row) {
      losses[row] = {.loss = std::min(lost[2 * row], lost[2 * row + 1]), .nearest_loss = lost[2 * row]};
      if (lost[2 * row + 1] < lost[2 * row]) std::copy_n(corrected_.data() + row * bytes, bytes, out + row * bytes);
    }
  }

  void difference(const float* x, const std::byte* row, float* out) const {
    info_of(type_).unpack_row(row, width_, out);
    for (std::int64_t i = 0; i < width_; ++i) out[i] -= x[i];
  }

  const DType type_;
  const InputGeometry& geometry_;
  const quant::GridFormat& format_;
  const NearestLevel nearest_;
  const std::int64_t width_;
  std::vector<quant::SubGrid> grids_;
  std::vector<float> open_;    // [rows, width] in the geometry's order: what is left to encode
  std::vector<float> errors_;  // [rows, kColumnsAtOnce]
  std::vector<float> differences_;  // [rows, nearest and corrected, width]
  std::vector<std::uint8_t> codes_;
  std::vector<std::byte> corrected_;
};

// H in the order of the geometry, damped.
std::vector<double> ordered(const GramMatrix& gram, const InputGeometry& geometry, double added) {
  const std::int64_t n = geometry.width;
  const double scale = 1.0 / static_cast<double>(gram.num_rows());
  std::vector<double> h(static_cast<std::size_t>(n * n));
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = i; j < n; ++j) {
      const std::int64_t a = geometry.order[static_cast<std::size_t>(i)], b = geometry.order[static_cast<std::size_t>(j)];
      h[static_cast<std::size_t>(i * n + j)] = gram.at(a, b) * scale;
    }
    double& diagonal = h[static_cast<std::size_t>(i * n + i)];
    diagonal = diagonal > 0.0 ? diagonal + added : 1.0 + added;  // an input that is always 0 corrects nothing
  }
  return h;
}

}  // namespace

std::optional<InputGeometry> geometry_of(const GramMatrix& gram, ThreadPool& pool) {
  const std::int64_t n = gram.width();
  const double num_rows = static_cast<double>(std::max<std::int64_t>(1, gram.num_rows()));
  InputGeometry geometry;
  geometry.width = n;
  geometry.order.resize(static_cast<std::size_t>(n));
  std::iota(geometry.order.begin(), geometry.order.end(), 0);
  std::ranges::stable_sort(geometry.order, [&](std::int32_t a, std::int32_t b) { return gram.at(a, a) > gram.at(b, b); });
  double sum = 0.0;
  geometry.products.resize(static_cast<std::size_t>(n * n));
  for (std::int64_t i = 0; i < n; ++i) {
    sum += gram.at(i, i) / num_rows;
    geometry.mean_squares.push_back(static_cast<float>(gram.at(i, i) / num_rows));
    for (std::int64_t j = i; j < n; ++j) {
      const auto product = static_cast<float>(gram.at(i, j) / num_rows);
      geometry.products[static_cast<std::size_t>(i * n + j)] = geometry.products[static_cast<std::size_t>(j * n + i)] = product;
    }
  }
  const double mean = sum / static_cast<double>(n);
  for (const double damping : {0.01, 0.03, 0.1}) {
    const auto factor = inverse_factor(ordered(gram, geometry, damping * mean), n, pool);
    if (!factor) continue;
    geometry.damping = damping;
    geometry.factor.assign(factor->begin(), factor->end());
    return geometry;
  }
  return std::nullopt;
}

GptqResult encode_rows_gptq(DType type, const InputGeometry& geometry, std::span<const float> rows, ThreadPool& pool,
                            std::span<std::byte> out) {
  const std::int64_t num_rows = std::ssize(rows) / geometry.width, bytes = row_bytes(type, geometry.width);
  CHECK(num_rows * bytes == std::ssize(out));
  std::vector<GptqResult> losses(static_cast<std::size_t>(num_rows));
  pool.parallel_for((num_rows + kRowsOfTask - 1) / kRowsOfTask, [&](std::int64_t task) {
    const std::int64_t begin = task * kRowsOfTask, count = std::min(kRowsOfTask, num_rows - begin);
    RowEncoder encoder(type, geometry);
    encoder.encode(rows.data() + begin * geometry.width, count, out.data() + begin * bytes, losses.data() + begin);
  });
  GptqResult sum;
  for (const GptqResult& loss : losses) {
    sum.loss += loss.loss;
    sum.nearest_loss += loss.nearest_loss;
  }
  return sum;
}

}  // namespace kvasir::compress
