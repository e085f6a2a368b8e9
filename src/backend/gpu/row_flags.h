// Which rows of a step met a number that is none, as kernels say it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "backend/cpu/step_rows.h"
#include "backend/gpu/device_array.h"

namespace kvasir::backend {

// A kernel writes a byte for each row that it looks at; they come home together, when somebody asks. Borrows the device
// and the rows. Thread safety: none.
class RowFlags {
 public:
  RowFlags(GpuDevice& device, StepRows& rows) : device_(device), rows_(rows) {}

  void begin_step();
  // Where a kernel writes `per_row` bytes for each of num_rows rows, 0 for one that is lost. Row i stands for row i of
  // the step, or for step_rows[i].
  std::uint8_t* take(std::int32_t num_rows, std::int32_t per_row = 1);
  std::uint8_t* take(std::span<const std::int32_t> step_rows, std::int32_t per_row = 1);
  // Marks the lost ones in the rows. Waits for the device.
  void collect();

 private:
  struct Use {
    std::size_t page = 0;
    std::int64_t first = 0;  // of the page's flags
    std::int32_t per_row = 1;
    std::vector<std::int32_t> planned_rows;
  };
  std::uint8_t* take_flags(Use& use);
  Use& next_use();

  static constexpr std::int64_t kFlagsPerPage = 1 << 16;
  GpuDevice& device_;
  StepRows& rows_;
  struct Page {
    explicit Page(GpuDevice& device) : on_device(device) {}

    DeviceArray<std::uint8_t> on_device;
    std::int64_t num_used = 0;
    std::vector<std::uint8_t> home;
  };
  std::vector<std::unique_ptr<Page>> pages_;
  std::size_t page_ = 0;  // that is being filled
  std::vector<Use> uses_;  // kept for their memory
  std::size_t num_uses_ = 0;
};

}  // namespace kvasir::backend
