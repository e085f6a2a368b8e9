// The CPU backend's own tensors: packed weight matrices and matmul inputs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "backend/backend.h"
#include "base/aligned_buffer.h"
#include "quant/dtype.h"

namespace kvasir::backend {

// Groups of 16 rows in the kernel table's packing.
class CpuMatrix final : public Matrix {
 public:
  // All of its weights, in one run.
  std::span<const std::byte> bytes() const { return {packed, static_cast<std::size_t>(packed_bytes)}; }

  DType dtype = DType::kF32;
  const kernels::FormatKernels* format = nullptr;  // null: the type's, which may have several
  std::int64_t num_groups = 0;
  const kernels::NibblePlaneKernels*
      nibble_planes = nullptr;   // set: the groups lie in two planes, `packed` and `low`
  std::int64_t group_bytes = 0;  // in `packed`
  const std::byte* packed = nullptr;
  const std::byte* low = nullptr;  // behind the groups of `packed`; null without planes
  AlignedBuffer memory;            // of all of them; empty where they are borrowed
};

// Float rows, and beside each its quantised form when the width is a multiple of the activation block.
class CpuActivation final : public Activation {
 public:
  float* row(std::int64_t index) const { return floats + index * width; }
  bool is_quantized() const { return quantized != nullptr; }

  std::int32_t max_rows = 0;
  std::int32_t width = 0;
  float* floats = nullptr;  // [max_rows, width]
  bool floats_are_read =
      true;  // by some matrix of this width; otherwise norm and gate keep them to themselves
  std::byte* quantized = nullptr;  // in tiles of rows: kernels/table.h, quantize_row
  AlignedBuffer memory;
};

inline CpuActivation& cpu(Activation& activation) { return static_cast<CpuActivation&>(activation); }
inline const CpuActivation& cpu(const Activation& activation) {
  return static_cast<const CpuActivation&>(activation);
}
inline const CpuMatrix& cpu(const Matrix& matrix) { return static_cast<const CpuMatrix&>(matrix); }

}  // namespace kvasir::backend
