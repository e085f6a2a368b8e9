// A GPU backend's own tensors: packed weight matrices and matmul inputs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "backend/cpu/cpu_tensors.h"
#include "backend/gpu/gpu_device.h"
#include "backend/tensors.h"
#include "base/aligned_buffer.h"
#include "quant/dtype.h"

namespace kvasir::backend {

// Groups of 16 rows in the packing of the CPU's kernel table. The host packs them; once all rows are there the bytes are
// the device's alone.
class GpuMatrix final : public Matrix {
 public:
  explicit GpuMatrix(GpuDevice& device) : device_(device) {}
  GpuMatrix(const GpuMatrix&) = delete;
  GpuMatrix& operator=(const GpuMatrix&) = delete;
  ~GpuMatrix() override { device_.free(packed); }

  DType dtype = DType::kF32;
  std::int64_t num_groups = 0, group_bytes = 0;
  bool reads_floats = false;
  bool w8a8 = false;                  // in the fast mode's format
  AlignedBuffer staging;              // while rows are packed
  std::int64_t num_packed_rows = 0;   // of them
  const std::byte* packed = nullptr;  // of the device
  std::unique_ptr<CpuMatrix> host;    // set: the matrix stays with the host, which multiplies

 private:
  GpuDevice& device_;
};

// Rows as floats and, where some matrix reads it, quantised.
class GpuActivation final : public Activation {
 public:
  explicit GpuActivation(GpuDevice& device) : device_(device) {}
  GpuActivation(const GpuActivation&) = delete;
  GpuActivation& operator=(const GpuActivation&) = delete;
  ~GpuActivation() override {
    device_.free(floats);
    device_.free(quantized);
  }

  Rows rows() const { return {.data = floats, .stride = width, .width = width}; }

  std::int32_t max_rows = 0, width = 0;
  float* floats = nullptr;  // [max_rows, width]
  std::byte* quantized = nullptr;

 private:
  GpuDevice& device_;
};

inline GpuActivation& gpu(Activation& activation) { return static_cast<GpuActivation&>(activation); }
inline const GpuActivation& gpu(const Activation& activation) { return static_cast<const GpuActivation&>(activation); }
inline const GpuMatrix& gpu(const Matrix& matrix) { return static_cast<const GpuMatrix&>(matrix); }

}  // namespace kvasir::backend
