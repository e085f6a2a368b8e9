// Mixture-of-experts layers on a GPU: the host routes, the device multiplies and adds up.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "backend/backend.h"
#include "backend/cpu/expert_groups.h"
#include "backend/cpu/step_rows.h"
#include "backend/gpu/device_array.h"
#include "backend/gpu/device_copies.h"
#include "backend/gpu/gpu_matmul.h"
#include "backend/gpu/gpu_tensors.h"
#include "backend/gpu/row_flags.h"
#include "kernels/table.h"

namespace kvasir::backend {

// A step's rows grouped by expert, with the memory that the experts work in.
class GpuExpertRows final : public ExpertRows, public ExpertGroups {
 public:
  GpuExpertRows(const ExpertShape& shape, GpuDevice& device)
      : ExpertGroups(shape), device_rows(device), device_slots(device), choice_weights(device), in(device), gate_and_up(device),
        intermediate(device), outputs(device), quantized(device) {}

  DeviceArray<std::int32_t> device_rows, device_slots;
  DeviceArray<float> choice_weights;
  DeviceArray<float> in;            // [slots, hidden]
  DeviceArray<float> gate_and_up;   // [slots, 2 * intermediate]: gate, then up
  DeviceArray<float> intermediate;  // [slots, intermediate]
  DeviceArray<float> outputs;       // [slots, hidden]
  DeviceArray<std::byte> quantized;  // of the experts' rows, one expert behind the other
};

// The order of every sum is that of the CPU. Borrows all that it is given. Thread safety: none.
class GpuExperts {
 public:
  GpuExperts(GpuDevice& device, const kernels::KernelTable& kernels, GpuMatmul& matmuls, DeviceCopies& copies, StepRows& rows,
             RowFlags& flags)
      : device_(device), kernels_(kernels), matmuls_(matmuls), copies_(copies), rows_(rows), flags_(flags),
        identity_(device), gates_(device) {}

  // As Backend has them.
  void route(const RouteOp& op, GpuExpertRows& experts);
  void add_experts(const ExpertMlpOp& op, const GpuActivation& in, GpuExpertRows& experts, Rows out);
  void add_gated(Rows gate_rows, Rows y, float scale, Rows out);

 private:
  void bring_home(const Rows& rows, std::int32_t num_rows, std::vector<float>& home);
  // Rows of slots as an expert's matmul takes them, in floats and quantised.
  void quantize(GpuExpertRows& experts, const float* floats, std::int32_t width);
  void multiply(const ExpertProjection& projection, const float* floats, GpuExpertRows& experts, Rows out);

  GpuDevice& device_;
  const kernels::KernelTable& kernels_;
  GpuMatmul& matmuls_;
  DeviceCopies& copies_;
  StepRows& rows_;
  RowFlags& flags_;
  std::vector<std::int64_t> quantized_at_;  // by expert, of the rows that were quantised last
  std::vector<GpuProduct> products_;
  std::vector<float> home_, home_gates_;
  std::vector<std::int32_t> row_numbers_;
  DeviceArray<std::int32_t> identity_;
  DeviceArray<float> gates_;
};

cuda::Elementwise elementwise_of(Gate gate);

}  // namespace kvasir::backend
