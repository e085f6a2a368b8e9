// One matmul for tests and benchmarks: random weights packed for the kernels, and activations.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/random_weights.h"
#include "kernels/table.h"

namespace kvasir::kernels {

struct MatmulShape {
  DType dtype = DType::kF32;
  std::int64_t k = 32;
  std::int64_t num_rows = 16;
  std::int32_t num_tokens = 1;
  std::uint32_t seed = 0;
  float weight_deviation = 0.02f;
  float activation_deviation = 1.0f;
  bool w8a8 = false;  // the fast mode's format
};

// The kernels that the shape's problem is for.
inline const FormatKernels& format_of(const KernelTable& table, const MatmulShape& shape) {
  return (shape.w8a8 ? table.w8a8_formats : table.formats)[static_cast<int>(shape.dtype)];
}

std::string describe(const MatmulShape& shape);

class MatmulProblem {
 public:
  explicit MatmulProblem(const MatmulShape& shape);
  MatmulProblem(const MatmulShape& shape, RandomWeights weights, std::vector<float> x);

  const MatmulShape& shape() const { return shape_; }
  const RandomWeights& weights() const { return weights_; }
  const std::vector<float>& x() const { return x_; }  // [num_tokens, k]
  std::int64_t num_groups() const;
  // Arguments for all groups and tokens, with `out` of stride num_rows.
  MatmulArgs args(const KernelTable& table, float* out);

 private:
  MatmulShape shape_;
  RandomWeights weights_;
  std::vector<float> x_;
  std::vector<std::byte> packed_storage_, quantized_storage_;
  std::byte* packed_ = nullptr;     // 64-byte aligned
  std::byte* quantized_ = nullptr;  // 64-byte aligned
};

}  // namespace kvasir::kernels
