// A step's rows grouped by expert, and the inputs and outputs of the experts' matmuls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "backend/cpu/expert_groups.h"
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

// Thread safety: what is const may run on several threads.
class CpuExpertRows final : public ExpertRows, public ExpertGroups {
 public:
  // Whether the experts' matrices read floats: gate and up, and down.
  struct ReadsFloats {
    bool hidden = false;
    bool intermediate = false;
  };
  explicit CpuExpertRows(const ExpertShape& shape) : ExpertGroups(shape) {}
  static Result<std::unique_ptr<CpuExpertRows>> make(const kernels::KernelTable& kernels,
                                                     const ExpertShape& shape, ReadsFloats reads_floats,
                                                     MemorySource& memory);

  // As ExpertGroups has it; lays out the inputs besides.
  void group(const kernels::KernelTable& kernels, std::int32_t num_rows);

  GroupedActivation in;            // [slots, hidden]
  GroupedActivation intermediate;  // [slots, intermediate]
  // [slots, 2 * intermediate]: gate, then up. The outputs take their memory once these have been used.
  Rows gate_and_up() { return rows_of(2 * shape().intermediate_size); }
  Rows outputs() { return rows_of(shape().hidden_size); }  // [slots, hidden]

 private:
  Rows rows_of(std::int32_t width) {
    return {.data = reinterpret_cast<float*>(products_.data()), .stride = width, .width = width};
  }

  AlignedBuffer products_;
};

}  // namespace kvasir::backend
