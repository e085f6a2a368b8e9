// A step's rows by expert: who goes where.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "backend/experts.h"

namespace kvasir::backend {

// Up to kernels::kTokensPerActivationTile neighbouring rows of one expert, whose cache lines no other rows share.
struct ExpertTile {
  std::int32_t expert = 0;
  std::int32_t first = 0;  // among the expert's rows
  std::int32_t count = 0;
};

// A slot is one choice of one row. Slots are in order of expert, and of row within an expert.
//
// Thread safety: what is const may run on several threads, and so may writing the choices of different rows.
class ExpertGroups {
 public:
  explicit ExpertGroups(const ExpertShape& shape);

  const ExpertShape& shape() const { return shape_; }
  // Where the choices of a row are written before group(): [num_used], experts ascending.
  std::int32_t* experts(std::int32_t row) { return experts_.data() + choice_at(row, 0); }
  float* weights(std::int32_t row) { return weights_.data() + choice_at(row, 0); }
  const float* weights(std::int32_t row) const { return weights_.data() + choice_at(row, 0); }

  // Gives every choice of the first num_rows rows its slot. A stable counting sort.
  void group(std::int32_t num_rows);

  std::int32_t num_slots() const { return first_slot_.back(); }
  std::int32_t first_slot(std::int32_t expert) const { return first_slot_[static_cast<std::size_t>(expert)]; }
  const std::vector<std::int32_t>& first_slots() const { return first_slot_; }
  std::int32_t num_rows_of(std::int32_t expert) const { return first_slot(expert + 1) - first_slot(expert); }
  std::int32_t row_of(std::int32_t slot) const { return row_of_[static_cast<std::size_t>(slot)]; }
  const std::int32_t* rows_of_slots() const { return row_of_.data(); }
  std::int32_t slot_of(std::int32_t row, std::int32_t choice) const { return slots_[choice_at(row, choice)]; }
  const std::int32_t* slots_of_rows() const { return slots_.data(); }
  // The experts that have rows, those with the most first.
  const std::vector<std::int32_t>& busy_experts() const { return busy_experts_; }
  const std::vector<ExpertTile>& tiles() const { return tiles_; }

 private:
  std::size_t choice_at(std::int32_t row, std::int32_t choice) const {
    return static_cast<std::size_t>(std::int64_t{row} * shape_.num_used + choice);
  }

  ExpertShape shape_;
  std::vector<std::int32_t> experts_, slots_;  // [rows, num_used]
  std::vector<float> weights_;                 // [rows, num_used]
  std::vector<std::int32_t> row_of_;           // [slots]
  std::vector<std::int32_t> first_slot_;       // [num_experts + 1]
  std::vector<std::int32_t> next_slot_;        // [num_experts], while grouping
  std::vector<std::int32_t> busy_experts_;
  std::vector<ExpertTile> tiles_;
};

}  // namespace kvasir::backend
