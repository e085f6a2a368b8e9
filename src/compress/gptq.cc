#include "compress/gptq.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "compress/row_walk.h"
#include "compress/upper_factor.h"
#include "quant/fit/fitted_format.h"

namespace kvasir::compress {
namespace {

bool beside_each_other(std::span<const float> levels) {
  for (std::size_t i = 1; i < levels.size(); ++i) {
    if (levels[i] - levels[i - 1] != 1.0f) return false;
  }
  return true;
}

// Up to kRowLanes rows at a time. All arrays have lanes beside each other: [.., kRowLanes].
class RowEncoder {
 public:
  RowEncoder(DType type, const InputGeometry& geometry)
      : type_(type), geometry_(geometry), format_(*quant::grid_format(type)), is_uniform_(beside_each_other(format_.levels())),
        width_(geometry.width), num_subs_(width_ / format_.sub_elements()) {
    const auto size = static_cast<std::size_t>(width_ * kRowLanes);
    for (std::vector<float>* each : {&x_, &nearest_errors_, &errors_, &indices_, &corrections_}) each->resize(size);
    for (std::vector<float>* each : {&scales_, &offsets_}) each->resize(static_cast<std::size_t>(num_subs_ * kRowLanes));
    grid_.resize(static_cast<std::size_t>(num_subs_));
    values_.resize(static_cast<std::size_t>(width_));
    codes_.resize(static_cast<std::size_t>(width_));
  }

  // Rows as [num_rows, width]; `results`: of each.
  void encode(const float* x, std::int64_t num_rows, std::byte* out, GptqResult* results) {
    const std::int64_t bytes = row_bytes(type_, width_);
    for (std::int64_t row = 0; row < num_rows; ++row) encode_nearest(x + row * width_, row, out + row * bytes);
    double nearest_losses[kRowLanes] = {}, losses[kRowLanes] = {};
    walk(false, nearest_errors_.data(), nearest_losses);
    walk(true, errors_.data(), losses);
    for (std::int64_t row = 0; row < num_rows; ++row) {
      results[row] = {.loss = std::min(losses[row], nearest_losses[row]), .nearest_loss = nearest_losses[row]};
      if (losses[row] < nearest_losses[row]) put_codes(row, out + row * bytes);
    }
  }

 private:
  void encode_nearest(const float* x, std::int64_t row, std::byte* out) {
    format_.fit(x, geometry_.mean_squares.data(), width_, out);
    format_.read_grid(out, width_, grid_.data());
    for (std::int64_t sub = 0; sub < num_subs_; ++sub) {
      scales_[static_cast<std::size_t>(sub * kRowLanes + row)] = grid_[static_cast<std::size_t>(sub)].scale;
      offsets_[static_cast<std::size_t>(sub * kRowLanes + row)] = grid_[static_cast<std::size_t>(sub)].offset;
    }
    info_of(type_).unpack_row(out, width_, values_.data());
    for (std::int64_t c = 0; c < width_; ++c) {
      const auto column = static_cast<std::size_t>(geometry_.order[static_cast<std::size_t>(c)]);
      x_[static_cast<std::size_t>(c * kRowLanes + row)] = x[column];
      nearest_errors_[static_cast<std::size_t>(c * kRowLanes + row)] = x[column] - values_[column];
    }
  }

  // Over all columns: rounds them, or takes the errors as they are. Adds up what is lost.
  void walk(bool rounds, float* errors, double* losses) {
    std::ranges::fill(corrections_, 0.0f);
    const float* scales[kColumnsOfBlock];
    const float* offsets[kColumnsOfBlock];
    for (std::int64_t begin = 0; begin < width_; begin += kColumnsOfBlock) {
      const std::int64_t end = std::min(width_, begin + kColumnsOfBlock);
      for (std::int64_t c = begin; c < end; ++c) {
        const std::int64_t sub = geometry_.order[static_cast<std::size_t>(c)] / format_.sub_elements();
        scales[c - begin] = scales_.data() + sub * kRowLanes;
        offsets[c - begin] = offsets_.data() + sub * kRowLanes;
      }
      const RowRounding rounding{.levels = format_.levels(), .is_uniform = is_uniform_, .scales = scales, .offsets = offsets,
                                 .x = x_.data() + begin * kRowLanes, .indices = indices_.data() + begin * kRowLanes};
      const ColumnFactors factors{.feedback = geometry_.feedback.data() + begin * width_ + begin, .stride = width_,
                                  .diagonal = geometry_.diagonal.data() + begin, .added = geometry_.added.data() + begin};
      float* const of_block = errors + begin * kRowLanes;
      walk_block(factors, end - begin, rounds ? &rounding : nullptr, corrections_.data() + begin * kRowLanes, of_block, losses);
      spread_errors(factors, end - begin, of_block, end - begin, width_ - end, corrections_.data() + end * kRowLanes);
    }
  }

  void put_codes(std::int64_t row, std::byte* out) {
    for (std::int64_t c = 0; c < width_; ++c) {
      codes_[static_cast<std::size_t>(geometry_.order[static_cast<std::size_t>(c)])] =
          static_cast<std::uint8_t>(indices_[static_cast<std::size_t>(c * kRowLanes + row)]);
    }
    format_.put_codes(codes_.data(), width_, out);
  }

  const DType type_;
  const InputGeometry& geometry_;
  const quant::GridFormat& format_;
  const bool is_uniform_;
  const std::int64_t width_, num_subs_;
  std::vector<float> x_, nearest_errors_, errors_, indices_, corrections_;  // columns in the geometry's order
  std::vector<float> scales_, offsets_;                                     // by run of numbers that share them
  std::vector<quant::SubGrid> grid_;                                        // of a row, and so on
  std::vector<float> values_;
  std::vector<std::uint8_t> codes_;
};

// H in the order of the geometry, with `added` on its diagonal.
std::vector<double> ordered(const GramMatrix& gram, const InputGeometry& geometry, ThreadPool& pool) {
  const std::int64_t n = geometry.width;
  const double scale = 1.0 / static_cast<double>(gram.num_rows());
  std::vector<double> h(static_cast<std::size_t>(n * n));
  pool.parallel_for(n, [&](std::int64_t i) {
    for (std::int64_t j = i; j < n; ++j) {
      const std::int64_t a = geometry.order[static_cast<std::size_t>(i)], b = geometry.order[static_cast<std::size_t>(j)];
      h[static_cast<std::size_t>(i * n + j)] = gram.at(a, b) * scale;
    }
    h[static_cast<std::size_t>(i * n + i)] += geometry.added[static_cast<std::size_t>(i)];
  });
  return h;
}

// F and D of h = F D F^T from r of h = r r^T.
void put_factors(const std::vector<double>& r, InputGeometry& geometry, ThreadPool& pool) {
  const std::int64_t n = geometry.width;
  geometry.diagonal.resize(static_cast<std::size_t>(n));
  geometry.feedback.assign(static_cast<std::size_t>(n * n), 0.0f);
  pool.parallel_for(n, [&](std::int64_t k) {
    const double of_k = r[static_cast<std::size_t>(k * n + k)];
    geometry.diagonal[static_cast<std::size_t>(k)] = of_k * of_k;
    for (std::int64_t c = k + 1; c < n; ++c) {
      geometry.feedback[static_cast<std::size_t>(k * n + c)] =
          static_cast<float>(r[static_cast<std::size_t>(k * n + c)] / r[static_cast<std::size_t>(c * n + c)]);
    }
  });
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
  double mean = 0.0;
  for (std::int64_t i = 0; i < n; ++i) {
    mean += gram.at(i, i) / num_rows / static_cast<double>(n);
    geometry.mean_squares.push_back(static_cast<float>(gram.at(i, i) / num_rows));
  }
  geometry.added.resize(static_cast<std::size_t>(n));
  for (const double damping : {0.01, 0.03, 0.1}) {
    for (std::int64_t c = 0; c < n; ++c) {
      const std::int64_t column = geometry.order[static_cast<std::size_t>(c)];
      const bool is_dead = !(gram.at(column, column) > 0.0);  // an input that is always 0 corrects nothing
      geometry.added[static_cast<std::size_t>(c)] = damping * mean + (is_dead ? 1.0 : 0.0);
    }
    std::vector<double> h = ordered(gram, geometry, pool);
    if (!factor_upper(h, n, pool)) continue;
    geometry.damping = damping;
    put_factors(h, geometry, pool);
    return geometry;
  }
  return std::nullopt;
}

GptqResult encode_rows_gptq(DType type, const InputGeometry& geometry, std::span<const float> rows, ThreadPool& pool,
                            std::span<std::byte> out) {
  const std::int64_t num_rows = std::ssize(rows) / geometry.width, bytes = row_bytes(type, geometry.width);
  CHECK(num_rows * bytes == std::ssize(out));
  std::vector<GptqResult> results(static_cast<std::size_t>(num_rows));
  pool.parallel_for((num_rows + kRowLanes - 1) / kRowLanes, [&](std::int64_t task) {
    const std::int64_t begin = task * kRowLanes, count = std::min(kRowLanes, num_rows - begin);
    RowEncoder encoder(type, geometry);
    encoder.encode(rows.data() + begin * geometry.width, count, out.data() + begin * bytes, results.data() + begin);
  });
  GptqResult sum;
  for (const GptqResult& result : results) {
    sum.loss += result.loss;
    sum.nearest_loss += result.nearest_loss;
  }
  return sum;
}

}  // namespace kvasir::compress
