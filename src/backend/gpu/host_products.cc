#include "backend/gpu/host_products.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace kvasir::backend {
namespace {

const GpuProduct& first_in_memory(std::span<const GpuProduct> products) {
  return *std::ranges::min_element(products, {}, [](const GpuProduct& product) { return product.out.data; });
}

}  // namespace

HostProducts::HostProducts(GpuDevice& device, const kernels::KernelTable& kernels, ThreadPool& pool, Precision precision)
    : device_(device),
      kernels_(kernels),
      prefetcher_(pool),
      matmuls_(kernels, pool, precision, prefetcher_),
      grouped_(kernels, pool, matmuls_),
      sent_(device) {}

Result<std::unique_ptr<CpuMatrix>> HostProducts::make_matrix(const TensorView& tensor) {
  KVASIR_TRY(std::unique_ptr<Matrix> made, matmuls_.make_matrix(tensor, MatrixUse::kLayer, host_memory()));
  return std::unique_ptr<CpuMatrix>(static_cast<CpuMatrix*>(made.release()));
}

// The parts' inputs are then in floats_ or in quantized_, as far from the first as they are on the device.
void HostProducts::bring_inputs(std::span<const GpuProduct> products) {
  const std::int64_t k = products.front().weight->row_length;
  if (products.front().weight->reads_floats) {
    const float* begin = products.front().x;
    const float* end = begin;
    for (const GpuProduct& product : products) {
      begin = std::min(begin, product.x);
      end = std::max(end, product.x + product.num_tokens * k);
    }
    floats_.resize(static_cast<std::size_t>(end - begin));
    device_.copy_out(begin, std::as_writable_bytes(std::span(floats_)));
    for (std::size_t i = 0; i < products.size(); ++i) parts_[i].x = floats_.data() + (products[i].x - begin);
    return;
  }
  const std::byte* begin = products.front().quantized;
  const std::byte* end = begin;
  for (const GpuProduct& product : products) {
    begin = std::min(begin, product.quantized);
    end = std::max(end, product.quantized + kernels_.activation_bytes(k, product.num_tokens));
  }
  const std::int64_t num_bytes = end - begin;
  if (quantized_.size_bytes() < num_bytes) {
    auto larger = AlignedBuffer::allocate(num_bytes);
    if (!larger) return device_.fail("the host has no room for inputs of a matmul");
    quantized_ = std::move(*larger);
  }
  device_.copy_out(begin, std::span(quantized_.data(), static_cast<std::size_t>(num_bytes)));
  for (std::size_t i = 0; i < products.size(); ++i) parts_[i].quantized = quantized_.data() + (products[i].quantized - begin);
}

void HostProducts::send_outputs(const GpuProduct& first, std::int64_t num_rows, std::int32_t width) {
  const auto count = static_cast<std::int32_t>(num_rows);
  const float* const sent = sent_.assign(std::span(outputs_).first(static_cast<std::size_t>(num_rows * width)));
  if (first.accumulates) {
    device_.elementwise({.function = cuda::Elementwise::kAdd,
                         .a = first.out.data,
                         .b = sent,
                         .n = width,
                         .out = first.out.data,
                         .num_rows = count,
                         .a_stride = first.out.stride,
                         .b_stride = width,
                         .out_stride = first.out.stride});
    return;
  }
  device_.gather_rows({.x = sent,
                       .x_stride = width,
                       .num_rows = count,
                       .width = width,
                       .out = first.out.data,
                       .out_stride = first.out.stride});
}

void HostProducts::run(std::span<const GpuProduct> products) {
  if (products.empty() || !device_.error().empty()) return;
  const GpuProduct& first = first_in_memory(products);
  const auto width = static_cast<std::int32_t>(num_outputs_of(first));
  CHECK(products.size() == 1 || !first.accumulates);
  parts_.assign(products.size(), {});
  std::int64_t num_rows = 0;
  for (const GpuProduct& product : products) {
    CHECK(num_outputs_of(product) == width && product.out.stride == first.out.stride);
    num_rows = std::max(num_rows, (product.out.data - first.out.data) / first.out.stride + product.num_tokens);
  }
  outputs_.resize(std::max(outputs_.size(), static_cast<std::size_t>(num_rows * width)));
  bring_inputs(products);
  for (std::size_t i = 0; i < products.size(); ++i) {
    const GpuProduct& product = products[i];
    MatmulPart& part = parts_[i];
    part.weight = product.weight->host.get();
    part.first_group = product.first_group;
    part.num_groups = product.num_groups;
    part.num_tokens = product.num_tokens;
    part.out = {.data = outputs_.data() + (product.out.data - first.out.data) / first.out.stride * width,
                .stride = width,
                .width = width};
  }
  grouped_.run(parts_);
  send_outputs(first, num_rows, width);
}

}  // namespace kvasir::backend
