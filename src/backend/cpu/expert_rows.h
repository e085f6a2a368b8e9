// A step's rows grouped by expert, and the inputs and outputs of the experts' matmuls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "backend/experts.h"
#include "backend/memory_source.h"
#include "base/aligned_buffer.h"
#include "kernels/table.h"
#include "kvasir/result.h"

namespace kvasir::backend {

// Inputs of grouped matmuls. The rows of each expert are an activation of their own (kernels/activation.h), as
// if the others were not there.
class GroupedActivation {
 public:
  // Room for num_slots rows of `width` among num_experts experts. `reads_floats`: by a matrix of the experts.
  static Result<GroupedActivation> make(const kernels::KernelTable& kernels, std::int32_t num_slots,
                                        std::int32_t num_experts, std::int32_t width, bool reads_floats,
                                        MemorySource& memory);

  // Lays out the experts' rows: expert e has slots [first_slot[e], first_slot[e + 1]).
  void lay_out(const kernels::KernelTable& kernels, const std::vector<std::int32_t>& first_slot);

  std::int32_t width() const { return width_; }
  // The row of a slot, or null: no matrix of the experts reads floats.
  float* floats(std::int64_t slot) const { return floats_ == nullptr ? nullptr : floats_ + slot * width_; }
  // The quantised rows of an expert, or null: the width is no multiple of the activation block.
  std::byte* quantized(std::int32_t expert) const {
    return quantized_ == nullptr ? nullptr : quantized_ + offsets_[static_cast<std::size_t>(expert)];
  }

 private:
  std::int32_t width_ = 0;
  float* floats_ = nullptr;
  std::byte* quantized_ = nullptr;
  std::vector<std::int64_t> offsets_;  // of each expert's rows, in bytes
  AlignedBuffer memory_;
};

// Up to kernels::kTokensPerActivationTile neighbouring rows of one expert, whose cache lines no other rows share.
struct ExpertTile {
  std::int32_t expert = 0;
  std::int32_t first = 0;  // among the expert's rows
  std::int32_t count = 0;
};

// A slot is one choice of one row. Slots are in order of expert, and of row within an expert.
//
// Thread safety: what is const may run on several threads.
class CpuExpertRows final : public ExpertRows {
 public:
  // Whether the experts' matrices read floats: gate and up, and down.
  struct ReadsFloats {
    bool hidden = false;
    bool intermediate = false;
  };
  static Result<std::unique_ptr<CpuExpertRows>> make(const kernels::KernelTable& kernels,
                                                     const ExpertShape& shape, ReadsFloats reads_floats,
                                                     MemorySource& memory);

  const ExpertShape& shape() const { return shape_; }
  // Where the choices of a row are written before group(): [num_used], experts ascending.
  std::int32_t* experts(std::int32_t row) { return experts_.data() + choice_at(row, 0); }
  float* weights(std::int32_t row) { return weights_.data() + choice_at(row, 0); }
  const float* weights(std::int32_t row) const { return weights_.data() + choice_at(row, 0); }

  // Gives every choice of the first num_rows rows its slot. A stable counting sort.
  void group(const kernels::KernelTable& kernels, std::int32_t num_rows);

  std::int32_t num_slots() const { return first_slot_.back(); }
  std::int32_t first_slot(std::int32_t expert) const { return first_slot_[static_cast<std::size_t>(expert)]; }
  std::int32_t num_rows_of(std::int32_t expert) const { return first_slot(expert + 1) - first_slot(expert); }
  std::int32_t row_of(std::int32_t slot) const { return row_of_[static_cast<std::size_t>(slot)]; }
  std::int32_t slot_of(std::int32_t row, std::int32_t choice) const { return slots_[choice_at(row, choice)]; }
  // The experts that have rows, those with the most first.
  const std::vector<std::int32_t>& busy_experts() const { return busy_experts_; }
  const std::vector<ExpertTile>& tiles() const { return tiles_; }

  GroupedActivation in;            // [slots, hidden]
  GroupedActivation intermediate;  // [slots, intermediate]
  // [slots, 2 * intermediate]: gate, then up. The outputs take their memory once these have been used.
  Rows gate_and_up() { return rows_of(2 * shape_.intermediate_size); }
  Rows outputs() { return rows_of(shape_.hidden_size); }  // [slots, hidden]

 private:
  std::size_t choice_at(std::int32_t row, std::int32_t choice) const {
    return static_cast<std::size_t>(std::int64_t{row} * shape_.num_used + choice);
  }
  Rows rows_of(std::int32_t width) {
    return {.data = reinterpret_cast<float*>(products_.data()), .stride = width, .width = width};
  }

  ExpertShape shape_;
  AlignedBuffer products_;
  std::vector<std::int32_t> experts_, slots_;  // [rows, num_used]
  std::vector<float> weights_;                 // [rows, num_used]
  std::vector<std::int32_t> row_of_;           // [slots]
  std::vector<std::int32_t> first_slot_;       // [num_experts + 1]
  std::vector<std::int32_t> next_slot_;        // [num_experts], while grouping
  std::vector<std::int32_t> busy_experts_;
  std::vector<ExpertTile> tiles_;
};

}  // namespace kvasir::backend
