#include "backend/cpu/activation_quantizer.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/checked_math.h"

namespace kvasir::backend {
namespace {

// Without a branch in the loop.
bool are_finite(const float* x, std::int64_t count) {
  constexpr std::uint32_t kExponent = 0x7f800000;
  std::uint32_t num_bad = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    num_bad += (std::bit_cast<std::uint32_t>(x[i]) & kExponent) == kExponent ? 1 : 0;
  }
  return num_bad == 0;
}

}  // namespace

ActivationQuantizer::ActivationQuantizer(const kernels::KernelTable& kernels, const ThreadPool& pool,
                                         Precision precision, StepRows& rows)
    : kernels_(kernels),
      precision_(precision),
      rows_(rows),
      worker_rows_(static_cast<std::size_t>(pool.num_threads())) {}

Result<std::unique_ptr<Activation>> ActivationQuantizer::make(std::int32_t max_rows, std::int32_t width,
                                                              Readers readers, MemorySource& memory) {
  auto activation = std::make_unique<CpuActivation>();
  activation->max_rows = max_rows;
  activation->width = width;
  const std::int64_t float_bytes = ceil_div<std::int64_t>(std::int64_t{max_rows} * width * 4,
                                                          AlignedBuffer::kAlignment) *
                                   AlignedBuffer::kAlignment;
  const bool quantizes = width % kernels::kActivationBlock == 0 && readers.of_quantized;
  KVASIR_TRY(
      activation->memory,
      memory.allocate(float_bytes + (quantizes ? kernels_.activation_bytes(width, max_rows) : 0)));
  activation->floats = reinterpret_cast<float*>(activation->memory.data());
  if (quantizes) activation->quantized = activation->memory.data() + float_bytes;
  activation->floats_are_read = !quantizes || readers.of_floats;
  for (std::vector<float>& row : worker_rows_) {
    row.resize(std::max(row.size(), static_cast<std::size_t>(width)));
  }
  return activation;
}

void ActivationQuantizer::quantize(CpuActivation& out, const float* floats, std::int32_t row,
                                   std::int32_t num_rows, std::int32_t step_row) {
  if (out.is_quantized()) {
    quantize_to(out.quantized, floats, out.width, row, num_rows, step_row);
  } else if (!are_finite(floats, out.width)) {
    rows_.mark_non_finite(step_row);
  }
}

void ActivationQuantizer::quantize_to(std::byte* quantized, const float* floats, std::int64_t width,
                                      std::int32_t row, std::int32_t num_rows, std::int32_t step_row) {
  const auto quantize_row = precision_ == Precision::kFast ? kernels_.quantize_row_w8a8
                                                           : kernels_.quantize_row;
  if (!quantize_row(floats, width, row, num_rows, quantized)) rows_.mark_non_finite(step_row);
}

}  // namespace kvasir::backend
