// Rows that move, are looked at, or are added up by weight; rows and parts of rows with strides.
#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "backend/cuda/cases/make_cases.h"
#include "backend/cuda/cases/random_floats.h"
#include "backend/cuda/kernels/launch_args.h"

namespace kvasir::cuda {
namespace {

using kernels::KernelTable;
using Floats = std::span<const float>;
using Ints = std::span<const std::int32_t>;

std::vector<std::int32_t> random_rows(std::int64_t count, std::int64_t below, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<std::int32_t> rows;
  for (std::int64_t i = 0; i < count; ++i) rows.push_back(static_cast<std::int32_t>(random() % static_cast<std::uint32_t>(below)));
  return rows;
}

// numbers: rows, width, stride of x. arrays: x, rows, out.
OpCase make_gather_case(std::int64_t rows, std::int64_t width, bool is_chosen, std::uint32_t seed) {
  const std::int64_t stride = width + 5, num_from = is_chosen ? 9 : rows;
  const std::vector<float> x = random_floats(num_from * stride, 1.0f, seed);
  const std::vector<std::int32_t> chosen = random_rows(rows, num_from, seed);
  std::vector<float> out;
  for (std::int64_t r = 0; r < rows; ++r) {
    const auto from = x.begin() + (is_chosen ? chosen[static_cast<std::size_t>(r)] : r) * stride;
    out.insert(out.end(), from, from + width);
  }
  OpCase result{.op = "gather_rows",
                .name = "rows " + std::to_string(rows) + " width " + std::to_string(width) + (is_chosen ? " chosen" : ""),
                .numbers = {rows, width, stride}};
  result.add_input(Floats(x));
  result.add_input(is_chosen ? Ints(chosen) : Ints());
  result.add_output(ArrayKind::kFloats, Floats(out));
  return result;
}

// numbers: rows, width. arrays: x, finite.
OpCase make_finite_case(std::int64_t rows, std::int64_t width, std::uint32_t seed) {
  std::vector<float> x = random_floats(rows * width, 1.0f, seed);
  std::vector<std::uint8_t> is_finite(static_cast<std::size_t>(rows), 1);
  const float lost[] = {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                        -std::numeric_limits<float>::infinity()};
  for (std::int64_t r = seed % 2; r < rows; r += 2) {
    x[static_cast<std::size_t>(r * width + (r * 7) % width)] = lost[r % 3];
    is_finite[static_cast<std::size_t>(r)] = 0;
  }
  OpCase result{.op = "finite_rows",
                .name = "rows " + std::to_string(rows) + " width " + std::to_string(width),
                .numbers = {rows, width}};
  result.add_input(Floats(x));
  result.add_output(ArrayKind::kBytes, std::span<const std::uint8_t>(is_finite));
  return result;
}

// numbers: rows, choices, width, bits of the scale, replaces. arrays: x, slots, weights, out.
OpCase make_combine_case(const KernelTable& table, std::int64_t choices, bool replaces, std::uint32_t seed) {
  constexpr std::int64_t kRows = 5, kWidth = 150;
  const std::vector<float> x = random_floats(kRows * choices * kWidth, 1.0f, seed),
                           weights = random_floats(kRows * choices, 1.0f, seed + 1),
                           before = random_floats(kRows * kWidth, 1.0f, seed + 2);
  const std::vector<std::int32_t> slots = random_rows(kRows * choices, kRows * choices, seed);
  const float scale = seed % 2 == 0 ? 1.0f : 2.5f;
  std::vector<float> out = before, sum(kWidth), product(kWidth);
  for (std::int64_t r = 0; r < kRows; ++r) {
    for (std::int64_t c = 0; c < choices; ++c) {
      const auto at = static_cast<std::size_t>(r * choices + c);
      table.scale(x.data() + slots[at] * kWidth, weights[at], kWidth, c == 0 ? sum.data() : product.data());
      if (c > 0) table.add(sum.data(), product.data(), kWidth, sum.data());
    }
    if (scale != 1.0f) table.scale(sum.data(), scale, kWidth, sum.data());
    float* const to = out.data() + r * kWidth;
    if (replaces) std::copy(sum.begin(), sum.end(), to);
    if (!replaces) table.add(to, sum.data(), kWidth, to);
  }
  OpCase result{.op = "combine_rows",
                .name = "choices " + std::to_string(choices) + (replaces ? " replaces" : "") + " seed " + std::to_string(seed),
                .numbers = {kRows, choices, kWidth, static_cast<std::int64_t>(std::bit_cast<std::uint32_t>(scale)), replaces}};
  result.add_input(Floats(x));
  result.add_input(Ints(slots));
  result.add_input(Floats(weights));
  result.add_in_out(ArrayKind::kFloats, Floats(before), Floats(out));
  return result;
}

// numbers: rows, n, strides of a, b and out. arrays: a, b, out. Gates beside each other, as fused matrices leave them.
OpCase make_strided_case(const KernelTable& table, std::int64_t rows, std::int64_t n, std::uint32_t seed) {
  const std::int64_t stride = 2 * n, out_stride = n + 3;
  const std::vector<float> both = random_floats(rows * stride, 3.0f, seed),
                           before = random_floats(rows * out_stride, 1.0f, seed + 1);
  std::vector<float> out = before;
  for (std::int64_t r = 0; r < rows; ++r) {
    table.silu_mul(both.data() + r * stride, both.data() + r * stride + n, n, out.data() + r * out_stride);
  }
  OpCase result{.op = "elementwise_rows",
                .name = "rows " + std::to_string(rows) + " n " + std::to_string(n),
                .numbers = {rows, n, stride, out_stride}};
  result.add_input(Floats(both));
  result.add_in_out(ArrayKind::kFloats, Floats(before), Floats(out));
  return result;
}

// numbers: rows, parts, width of a part, stride. arrays: x, weight. Heads of rows that lie beside others.
OpCase make_parts_case(const KernelTable& table, std::int64_t rows, std::int64_t parts, std::int64_t width, std::uint32_t seed) {
  const std::int64_t stride = parts * width + 7;
  const std::vector<float> before = random_floats(rows * stride, 3.0f, seed), weight = random_floats(width, 1.0f, seed + 1);
  std::vector<float> x = before;
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t p = 0; p < parts; ++p) {
      float* const part = x.data() + r * stride + p * width;
      table.rms_norm(part, weight.data(), 1e-6f, width, part);
    }
  }
  OpCase result{.op = "norm_parts",
                .name = "rows " + std::to_string(rows) + " parts " + std::to_string(parts) + " width " + std::to_string(width),
                .numbers = {rows, parts, width, stride}};
  result.add_in_out(ArrayKind::kFloats, Floats(before), Floats(x));
  result.add_input(Floats(weight));
  return result;
}

}  // namespace

std::vector<OpCase> make_move_cases(const KernelTable& table) {
  return {make_gather_case(4, 200, true, 1),
          make_gather_case(3, 57, false, 2),
          make_finite_case(7, 100, 1),
          make_finite_case(2, 33, 2),
          make_combine_case(table, 1, false, 1),
          make_combine_case(table, 2, true, 2),
          make_combine_case(table, 8, false, 3),
          make_strided_case(table, 3, 300, 1),
          make_strided_case(table, 1, 17, 2),
          make_parts_case(table, 3, 4, 64, 1),
          make_parts_case(table, 2, 1, 300, 2)};
}

}  // namespace kvasir::cuda
