#include "backend/cpu/expert_rows.h"

#include <algorithm>

#include "base/check.h"
#include "base/checked_math.h"

namespace kvasir::backend {
Result<GroupedActivation> GroupedActivation::make(const kernels::KernelTable& kernels, std::int32_t num_slots,
                                                  std::int32_t num_experts, std::int32_t width,
                                                  bool reads_floats, MemorySource& memory) {
  GroupedActivation made;
  made.width_ = width;
  made.offsets_.resize(static_cast<std::size_t>(num_experts));
  const bool quantizes = width % kernels::kActivationBlock == 0;
  constexpr auto kAlignment = static_cast<std::int64_t>(AlignedBuffer::kAlignment);
  const std::int64_t float_bytes = reads_floats || !quantizes
                                       ? ceil_div<std::int64_t>(std::int64_t{num_slots} * width * 4,
                                                                kAlignment) *
                                             kAlignment
                                       : 0;
  // Each expert may end in a tile that is not full, with what a tile has beside its rows.
  const std::int64_t quantized_bytes = quantizes ? kernels.activation_bytes(width, num_slots) +
                                                       num_experts * kernels.activation_bytes(width, 1)
                                                 : 0;
  KVASIR_TRY(made.memory_, memory.allocate(float_bytes + quantized_bytes));
  if (float_bytes > 0) made.floats_ = reinterpret_cast<float*>(made.memory_.data());
  if (quantizes) made.quantized_ = made.memory_.data() + float_bytes;
  return made;
}

void GroupedActivation::lay_out(const kernels::KernelTable& kernels,
                                const std::vector<std::int32_t>& first_slot) {
  if (quantized_ == nullptr) return;
  std::int64_t bytes = 0;
  for (std::size_t e = 0; e < offsets_.size(); ++e) {
    offsets_[e] = bytes;
    const std::int32_t num_rows = first_slot[e + 1] - first_slot[e];
    if (num_rows > 0) bytes += kernels.activation_bytes(width_, num_rows);
  }
  CHECK(quantized_ + bytes <= memory_.data() + memory_.size_bytes());
}

Result<std::unique_ptr<CpuExpertRows>> CpuExpertRows::make(const kernels::KernelTable& kernels,
                                                           const ExpertShape& shape,
                                                           ReadsFloats reads_floats, MemorySource& memory) {
  auto made = std::make_unique<CpuExpertRows>(shape);
  const std::int32_t num_slots = shape.max_rows * shape.num_used;
  KVASIR_TRY(made->in, GroupedActivation::make(kernels, num_slots, shape.num_experts, shape.hidden_size,
                                               reads_floats.hidden, memory));
  KVASIR_TRY(made->intermediate, GroupedActivation::make(kernels, num_slots, shape.num_experts,
                                                         shape.intermediate_size, reads_floats.intermediate,
                                                         memory));
  const std::int64_t widest = std::max(2 * shape.intermediate_size, shape.hidden_size);
  KVASIR_TRY(made->products_, memory.allocate(4 * num_slots * widest));
  return made;
}

void CpuExpertRows::group(const kernels::KernelTable& kernels, std::int32_t num_rows) {
  ExpertGroups::group(num_rows);
  in.lay_out(kernels, first_slots());
  intermediate.lay_out(kernels, first_slots());
}

}  // namespace kvasir::backend
