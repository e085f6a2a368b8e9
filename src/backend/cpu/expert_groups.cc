#include "backend/cpu/expert_groups.h"

#include <algorithm>

#include "base/check.h"
#include "kernels/table.h"

namespace kvasir::backend {
namespace {

constexpr std::int32_t kTile = kernels::kTokensPerActivationTile;

}  // namespace

ExpertGroups::ExpertGroups(const ExpertShape& shape) : shape_(shape) {
  CHECK(shape.num_experts <= kMaxExperts && shape.num_used <= shape.num_experts);
  const auto slots = static_cast<std::size_t>(shape.max_rows * shape.num_used);
  const auto experts = static_cast<std::size_t>(shape.num_experts);
  experts_.resize(slots);
  slots_.resize(slots);
  weights_.resize(slots);
  row_of_.resize(slots);
  first_slot_.resize(experts + 1);
  next_slot_.resize(experts);
  busy_experts_.reserve(experts);
  tiles_.reserve(slots / kTile + experts);
}

void ExpertGroups::group(std::int32_t num_rows) {
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
}

}  // namespace kvasir::backend
