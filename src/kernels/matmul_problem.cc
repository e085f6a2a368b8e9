#include "kernels/matmul_problem.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/check.h"

namespace kvasir::kernels {
namespace {

// Sizes `storage` to hold `bytes` at the returned multiple of 64.
std::byte* allocate_aligned(std::vector<std::byte>& storage, std::int64_t bytes) {
  storage.assign(static_cast<std::size_t>(bytes) + 64, std::byte{0xcd});
  const auto address = reinterpret_cast<std::uintptr_t>(storage.data());
  return storage.data() + (64 - address % 64) % 64;
}

std::vector<float> random_floats(std::int64_t count, float deviation, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.0f, 1.0f);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = deviation * normal(random);
  for (std::size_t i = 5; i < values.size(); i += 211) values[i] *= 30.0f;  // outlier channels
  return values;
}

}  // namespace

std::string describe(const MatmulShape& shape) {
  return std::string(name_of(shape.dtype)) + " k " + std::to_string(shape.k) + " rows " +
         std::to_string(shape.num_rows) + " tokens " + std::to_string(shape.num_tokens) + " seed " +
         std::to_string(shape.seed) + (shape.w8a8 ? " w8a8" : "");
}

MatmulProblem::MatmulProblem(const MatmulShape& shape)
    : MatmulProblem(shape,
                    random_weights(shape.dtype, shape.num_rows, shape.k, shape.weight_deviation, shape.seed),
                    random_floats(shape.num_tokens * shape.k, shape.activation_deviation, shape.seed + 1)) {}

MatmulProblem::MatmulProblem(const MatmulShape& shape, RandomWeights weights, std::vector<float> x)
    : shape_(shape), weights_(std::move(weights)), x_(std::move(x)) {}

std::int64_t MatmulProblem::num_groups() const {
  return (shape_.num_rows + kRowsPerGroup - 1) / kRowsPerGroup;
}

MatmulArgs MatmulProblem::args(const KernelTable& table, float* out) {
  const FormatKernels& format = format_of(table, shape_);
  const std::int64_t group_bytes = format.packed_group_bytes(shape_.k);
  packed_ = allocate_aligned(packed_storage_, num_groups() * group_bytes);
  for (std::int64_t group = 0; group < num_groups(); ++group) {
    const std::int64_t row = group * kRowsPerGroup;
    const int num_rows = static_cast<int>(std::min<std::int64_t>(kRowsPerGroup, shape_.num_rows - row));
    format.pack_group(weights_.row(row), weights_.row_bytes(), num_rows, shape_.k,
                      packed_ + group * group_bytes);
  }
  if (shape_.k % kActivationBlock == 0) {
    quantized_ = allocate_aligned(quantized_storage_, table.activation_bytes(shape_.k, shape_.num_tokens));
    for (std::int32_t t = 0; t < shape_.num_tokens; ++t) {
      const auto quantize = shape_.w8a8 ? table.quantize_row_w8a8 : table.quantize_row;
      CHECK(quantize(x_.data() + t * shape_.k, shape_.k, t, shape_.num_tokens, quantized_));
    }
  }
  return {.weights = packed_,
          .k = shape_.k,
          .num_rows = shape_.num_rows,
          .group_begin = 0,
          .group_end = num_groups(),
          .x = x_.data(),
          .quantized = quantized_,
          .num_tokens = shape_.num_tokens,
          .out = out,
          .out_stride = shape_.num_rows,
          .accumulate = false};
}

}  // namespace kvasir::kernels
