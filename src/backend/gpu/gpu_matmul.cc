#include "backend/gpu/gpu_matmul.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/checked_math.h"
#include "base/printable.h"
#include "tensor/tensor_name.h"

namespace kvasir::backend {
namespace {

using kernels::kRowsPerGroup;

}  // namespace

// The matrix without its bytes.
Result<std::unique_ptr<GpuMatrix>> GpuMatmul::lay_out(const TensorView& tensor) const {
  const kernels::FormatKernels& format = format_of(tensor.dtype);
  auto matrix = std::make_unique<GpuMatrix>(device_);
  matrix->num_rows = tensor.num_rows();
  matrix->row_length = tensor.row_length();
  matrix->dtype = tensor.dtype;
  matrix->reads_floats = format.reads_floats;
  matrix->w8a8 = reads_w8a8() && !format.reads_floats;
  matrix->num_groups = ceil_div<std::int64_t>(tensor.num_rows(), kRowsPerGroup);
  matrix->group_bytes = format.packed_group_bytes(tensor.row_length());
  const auto bytes = checked_mul(matrix->num_groups, matrix->group_bytes);
  if (!bytes) return make_error(ErrorKind::kBadFile, fmt::format("tensor {}: too large to pack", printable(tensor.name)));
  matrix->packed_bytes = *bytes;
  return matrix;
}

Result<std::unique_ptr<Matrix>> GpuMatmul::make_matrix(const TensorView& tensor, MatrixUse) {
  KVASIR_TRY(auto matrix, lay_out(tensor));
  if (layer_of_tensor(tensor.name) >= num_device_layers_) {
    KVASIR_TRY(matrix->host, host_.make_matrix(tensor));
    host_weight_bytes_ += matrix->packed_bytes;
  } else {
    KVASIR_TRY(matrix->staging, AlignedBuffer::allocate(matrix->packed_bytes));
  }
  note_reader(*matrix);
  return matrix;
}

Status GpuMatmul::upload(std::span<const std::byte> packed, const TensorView& tensor, GpuMatrix& matrix) {
  matrix.packed = device_.allocate_constant(packed);
  if (matrix.packed != nullptr || packed.empty()) return {};
  return make_error(ErrorKind::kMachine, fmt::format("tensor {}: the device has no room for its {} bytes",
                                                     printable(tensor.name), packed.size()));
}

Result<std::unique_ptr<Matrix>> GpuMatmul::adopt_matrix(const TensorView& tensor, MatrixUse,
                                                        std::span<const std::byte> packed) {
  KVASIR_TRY(auto matrix, lay_out(tensor));
  if (std::ssize(packed) != matrix->packed_bytes) {
    return make_error(ErrorKind::kBadFile, fmt::format("tensor {}: needs {} packed bytes, {} are there",
                                                       printable(tensor.name), matrix->packed_bytes, packed.size()));
  }
  KVASIR_CHECKED(upload(packed, tensor, *matrix));
  note_reader(*matrix);
  return matrix;
}

Result<PackedSize> GpuMatmul::packed_size(const TensorView& tensor) const {
  KVASIR_TRY(const auto matrix, lay_out(tensor));
  return PackedSize{.num_bytes = matrix->packed_bytes, .reads_floats = matrix->reads_floats};
}

void GpuMatmul::pack_rows(const TensorView& rows, std::int64_t first_row, Matrix& matrix) {
  auto& target = static_cast<GpuMatrix&>(matrix);
  CHECK(first_row % kRowsPerGroup == 0 && first_row + rows.num_rows() <= target.num_rows);
  if (target.host != nullptr) return host_.pack_rows(rows, first_row, *target.host);
  CHECK(target.staging.size_bytes() == target.packed_bytes);
  const kernels::FormatKernels& format = format_of(target.dtype);
  const std::int64_t k = target.row_length;
  pool_.parallel_for(ceil_div<std::int64_t>(rows.num_rows(), kRowsPerGroup), [&](std::int64_t group) {
    const std::int64_t first = group * kRowsPerGroup;
    const auto count = static_cast<int>(std::min<std::int64_t>(kRowsPerGroup, rows.num_rows() - first));
    format.pack_group(rows.row(first), row_bytes(target.dtype, k), count, k,
                      target.staging.data() + (first_row / kRowsPerGroup + group) * target.group_bytes);
  });
  target.num_packed_rows += rows.num_rows();
  if (target.num_packed_rows < target.num_rows) return;
  target.packed = device_.allocate_constant(target.staging.bytes());
  if (target.packed == nullptr) {
    device_.fail(fmt::format("the device has no room for a matrix of {} bytes", target.packed_bytes));
  }
  target.staging = {};
}

GpuProduct GpuMatmul::product_of(const GpuActivation& in, std::int32_t num_rows, const MatmulOp& op) {
  const GpuMatrix& weight = gpu(*op.weight);
  CHECK(weight.row_length == in.width);
  return {.weight = &weight,
          .num_groups = weight.num_groups,
          .x = in.floats,
          .quantized = in.quantized,
          .num_tokens = num_rows,
          .out = op.out,
          .scale = weight.scales.empty() ? 1.0f : weight.scales.front(),
          .bias = copies_.of(op.bias, weight.num_rows)};
}

void GpuMatmul::run(const GpuActivation& in, std::int32_t num_rows, std::span<const MatmulOp> ops, bool accumulate) {
  for (const MatmulOp& op : ops) {
    GpuProduct product = product_of(in, num_rows, op);
    product.accumulates = accumulate;
    multiply({&product, 1});
    if (op.tile_maxima.data == nullptr) continue;
    device_.tile_maxima({.logits = op.out.data,
                         .stride = op.out.stride,
                         .n = op.weight->num_rows,
                         .num_rows = num_rows,
                         .maxima = op.tile_maxima.data,
                         .maxima_stride = op.tile_maxima.stride});
  }
}

void GpuMatmul::run_groups(const GpuActivation& in, std::int32_t num_rows, const MatmulOp& op,
                           std::span<const std::int32_t> groups) {
  const GpuProduct whole = product_of(in, num_rows, op);
  for (std::size_t i = 0; i < groups.size();) {
    std::size_t count = 1;
    while (i + count < groups.size() && groups[i + count] == groups[i] + static_cast<std::int32_t>(count)) ++count;
    GpuProduct part = whole;
    part.first_group = groups[i];
    part.num_groups = static_cast<std::int64_t>(count);
    part.out.data += part.first_group * kRowsPerGroup;
    if (part.bias != nullptr) part.bias += part.first_group * kRowsPerGroup;
    multiply({&part, 1});
    i += count;
  }
}

void GpuMatmul::multiply(std::span<const GpuProduct> products) {
  if (products.empty() || products.front().num_tokens == 0) return;
  const GpuMatrix& weight = *products.front().weight;
  if (weight.host != nullptr) host_.run(products);
  for (const GpuProduct& product : products) {
    if (weight.host == nullptr) {
      device_.matmul(weight.dtype, {.weights = weight.packed + product.first_group * weight.group_bytes,
                                    .quantized = product.quantized,
                                    .x = product.x,
                                    .w8a8 = weight.w8a8,
                                    .k = weight.row_length,
                                    .num_rows = num_outputs_of(product),
                                    .num_tokens = product.num_tokens,
                                    .out = product.out.data,
                                    .out_stride = product.out.stride,
                                    .accumulate = product.accumulates});
    }
    scale_and_bias(product);
  }
}

void GpuMatmul::scale_and_bias(const GpuProduct& product) {
  cuda::ElementwiseArgs after{.function = cuda::Elementwise::kScale,
                              .a = product.out.data,
                              .factor = product.scale,
                              .n = num_outputs_of(product),
                              .out = product.out.data,
                              .num_rows = product.num_tokens,
                              .a_stride = product.out.stride,
                              .out_stride = product.out.stride};
  if (!product.weight->scales.empty()) device_.elementwise(after);
  if (product.bias == nullptr) return;
  after.function = cuda::Elementwise::kAdd;
  after.b = product.bias;
  device_.elementwise(after);
}

}  // namespace kvasir::backend
