// Operands of the ops: weights in the device's packing, rows of floats, inputs of matmuls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace kvasir::backend {

// A weight matrix in the device's own packing: num_rows outputs of row_length inputs.
class Matrix {
 public:
  virtual ~Matrix() = default;
  std::int64_t num_rows = 0;
  std::int64_t row_length = 0;
  std::int64_t packed_bytes = 0;
  // Factors on its products: empty, one, or one for each expert's rows.
  std::vector<float> scales;
};

// A borrowed block of float rows in device memory.
struct Rows {
  float* data = nullptr;
  std::int64_t stride = 0;  // in floats
  std::int32_t width = 0;

  float* row(std::int64_t index) const { return data + index * stride; }
};

// Inputs of a matmul: what norm, attend and gate produce. Holds the rows as floats and, where the width
// allows, quantised to int8 per 32 inputs (kernels/table.h, quantize_row).
class Activation {
 public:
  virtual ~Activation() = default;
};

// Additions of low rank to matrices (Hu et al. 2021, "LoRA"), in the device's own packing.
class Adapter {
 public:
  virtual ~Adapter() = default;
  std::int64_t num_bytes = 0;
};

// An adapter as rows run with it: its factors times `scale`.
struct ScaledAdapter {
  const Adapter* adapter = nullptr;  // null: the rows run on the matrices as they are
  float scale = 1.0f;

  bool operator==(const ScaledAdapter&) const = default;
};

}  // namespace kvasir::backend
