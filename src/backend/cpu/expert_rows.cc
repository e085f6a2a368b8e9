#include "backend/cpu/expert_rows.h"

#include <algorithm>

#include "base/check.h"
#include "base/checked_math.h"

namespace kvasir::backend {
namespace {

constexpr std::int32_t kTile = kernels::kTokensPerActivationTile;

}  // namespace

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
  CHECK(shape.num_experts <= kMaxExperts && shape.num_used <= shape.num_experts);
  auto made = std::make_unique<CpuExpertRows>();
  made->shape_ = shape;
  const std::int32_t num_slots = shape.max_rows * shape.num_used;
  KVASIR_TRY(made->in, GroupedActivation::make(kernels, num_slots, shape.num_experts, shape.hidden_size,
                                               reads_floats.hidden, memory));
  KVASIR_TRY(made->intermediate, GroupedActivation::make(kernels, num_slots, shape.num_experts,
                                                         shape.intermediate_size, reads_floats.intermediate,
                                                         memory));
  const std::int64_t widest = std::max(2 * shape.intermediate_size, shape.hidden_size);
  KVASIR_TRY(made->products_, memory.allocate(4 * num_slots * widest));
  const auto slots = static_cast<std::size_t>(num_slots);
  const auto experts = static_cast<std::size_t>(shape.num_experts);
  made->experts_.resize(slots);
  made->slots_.resize(slots);
  made->weights_.resize(slots);
  made->row_of_.resize(slots);
  made->first_slot_.resize(experts + 1);
  made->next_slot_.resize(experts);
  made->busy_experts_.reserve(experts);
  made->tiles_.reserve(slots / kTile + experts);
  return made;
}

void CpuExpertRows::group(const kernels::KernelTable& kernels, std::int32_t num_rows) {
  CHECK(num_rows <= shape_.max_rows);
  const auto num_slots = choice_at(num_rows, 0);
  std::ranges::fill(first_slot_, 0);
  for (std::size_t i = 0; i < num_slots; ++i) ++first_slot_[static_cast<std::size_t>(experts_[i]) + 1];
  busy_experts_.clear();
  tiles_.clear();
  for (std::int32_t e = 0; e < shape_.num_experts; ++e) {
    const auto i = static_cast<std::size_t>(e);
    const std::int32_t count = first_slot_[i + 1];
    first_slot_[i + 1] += first_slot_[i];
    next_slot_[i] = first_slot_[i];
    if (count > 0) busy_experts_.push_back(e);
    for (std::int32_t first = 0; first < count; first += kTile) {
      tiles_.push_back({.expert = e, .first = first, .count = std::min(kTile, count - first)});
    }
  }
  // Equal ones in order of their ids; std::stable_sort would allocate.
  std::ranges::sort(busy_experts_, [&](std::int32_t a, std::int32_t b) {
    return num_rows_of(a) != num_rows_of(b) ? num_rows_of(a) > num_rows_of(b) : a < b;
  });
  for (std::int32_t row = 0; row < num_rows; ++row) {
    for (std::int32_t choice = 0; choice < shape_.num_used; ++choice) {
      const std::size_t at = choice_at(row, choice);
      const std::int32_t slot = next_slot_[static_cast<std::size_t>(experts_[at])]++;
      slots_[at] = slot;
      row_of_[static_cast<std::size_t>(slot)] = row;
    }
  }
  in.lay_out(kernels, first_slot_);
  intermediate.lay_out(kernels, first_slot_);
}

}  // namespace kvasir::backend
