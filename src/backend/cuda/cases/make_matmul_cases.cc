#include <algorithm>
#include <random>

#include "backend/cuda/cases/make_cases.h"
#include "backend/cuda/kernels/launch_args.h"
#include "kernels/matmul_problem.h"

namespace kvasir::cuda {
namespace {

using kernels::MatmulProblem;
using kernels::MatmulShape;

// Bytes that a kernel must not read are absent; those that it must not write stay.
OpCase make_case(const kernels::KernelTable& table, const MatmulShape& shape, const char* op,
                 bool accumulate) {
  MatmulProblem problem(shape);
  std::vector<float> before(static_cast<std::size_t>(shape.num_tokens * shape.num_rows));
  std::mt19937 random(shape.seed + 7);
  std::normal_distribution<float> normal;
  for (float& each : before) each = normal(random);
  std::vector<float> out = before;
  kernels::MatmulArgs args = problem.args(table, out.data());
  args.accumulate = accumulate;
  const kernels::FormatKernels& format = kernels::format_of(table, shape);
  format.matmul(args);

  OpCase result{.op = op,
                .name = kernels::describe(shape) + (accumulate ? " accumulate" : ""),
                .numbers = {static_cast<std::int64_t>(shape.dtype), shape.k, shape.num_rows, shape.num_tokens,
                            accumulate, shape.w8a8}};
  const auto bytes_at = [](const void* p, std::int64_t bytes) {
    return std::span(static_cast<const std::byte*>(p), static_cast<std::size_t>(bytes));
  };
  result.add_input(bytes_at(args.weights, problem.num_groups() * format.packed_group_bytes(shape.k)));
  if (format.reads_floats) {
    result.add_input(std::span<const float>(problem.x()));
  } else {
    result.add_input(bytes_at(args.quantized, table.activation_bytes(shape.k, shape.num_tokens)));
  }
  if (accumulate) {
    result.add_in_out(ArrayKind::kFloats, std::span<const float>(before), std::span<const float>(out));
  } else {
    result.add_output(ArrayKind::kFloats, std::span<const float>(out));
  }
  return result;
}

std::int64_t random_k(const DTypeInfo& info, std::mt19937& random, std::int64_t at_most) {
  const std::int64_t unit = info.block_elements;
  return unit * static_cast<std::int64_t>(
                    1 + random() % static_cast<std::uint32_t>(std::max<std::int64_t>(at_most / unit, 1)));
}

}  // namespace

std::vector<OpCase> make_matvec_cases(const kernels::KernelTable& table) {
  std::vector<OpCase> cases;
  for (const DTypeInfo& info : kDTypeInfos) {
    if (table.formats[static_cast<int>(info.dtype)].reads_floats) continue;
    for (std::uint32_t i = 0; i < 3; ++i) {
      const std::uint32_t seed = 100 * static_cast<std::uint32_t>(info.dtype) + i;
      std::mt19937 random(seed);
      const std::int64_t k = random_k(info, random, 1200);
      const std::int64_t rows = 1 + static_cast<std::int64_t>(random() % 40);
      const std::int32_t tokens = i == 0 ? 1 : i == 1 ? 8 : 2 + static_cast<std::int32_t>(random() % 6);
      cases.push_back(make_case(
          table, {.dtype = info.dtype, .k = k, .num_rows = rows, .num_tokens = tokens, .seed = seed},
          "matvec", i == 2));
    }
  }
  return cases;
}

std::vector<OpCase> make_matmul_cases(const kernels::KernelTable& table) {
  std::vector<OpCase> cases;
  for (const DTypeInfo& info : kDTypeInfos) {
    for (std::uint32_t i = 0; i < 2; ++i) {
      const std::uint32_t seed = 100 * static_cast<std::uint32_t>(info.dtype) + 10 + i;
      std::mt19937 random(seed);
      const std::int64_t k = random_k(info, random, 600);
      const std::int64_t rows = 1 + static_cast<std::int64_t>(random() % 100);
      const std::int32_t tokens = 9 + static_cast<std::int32_t>(random() % (i == 0 ? 20 : 70));
      cases.push_back(make_case(
          table, {.dtype = info.dtype, .k = k, .num_rows = rows, .num_tokens = tokens, .seed = seed},
          "matmul", i == 1));
    }
  }
  return cases;
}

std::vector<OpCase> make_w8a8_matmul_cases(const kernels::KernelTable& table) {
  std::vector<OpCase> cases;
  const auto add = [&](DType dtype, std::int64_t k, std::int64_t rows, std::int32_t tokens, bool accumulate) {
    const auto seed = 5000 + static_cast<std::uint32_t>(cases.size());
    cases.push_back(make_case(
        table, {.dtype = dtype, .k = k, .num_rows = rows, .num_tokens = tokens, .seed = seed, .w8a8 = true},
        tokens <= kMaxMatvecTokens ? "matvec" : "matmul", accumulate));
  };
  for (const DTypeInfo& info : kDTypeInfos) {
    if (table.w8a8_formats[static_cast<int>(info.dtype)].reads_floats) continue;
    std::mt19937 random(static_cast<std::uint32_t>(info.dtype));
    const std::int64_t k = random_k(info, random, 600);
    add(info.dtype, k, 1 + random() % 40, 1 + static_cast<std::int32_t>(random() % 8), false);
    add(info.dtype, k, 1 + random() % 200, 9 + static_cast<std::int32_t>(random() % 20), true);
  }
  // Rows that end within a span, or with it; more spans than a stage has.
  for (const std::int64_t k : {32, 224, 256, 288, 576, 640, 2048, 2400}) {
    add(DType::kQ8_0, k, 17, 1, false);
    add(DType::kQ4_0, k, 33, 8, true);
    add(DType::kQ8_0, k, 40, 17, false);
  }
  add(DType::kQ8_0, 640, 160, 130, false);
  add(DType::kQ4_0, 1120, 129, 64, true);
  return cases;
}

}  // namespace kvasir::cuda
