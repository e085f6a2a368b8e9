// A step's cells on a GPU: where those of every block lie, and which a row's token goes to.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "backend/batch_input.h"
#include "backend/cpu/step_rows.h"
#include "backend/gpu/device_array.h"
#include "backend/gpu/gpu_device.h"

namespace kvasir::backend {

// The device keeps directories of cells; blocks whose cells have changed since go over again, once in a step. Borrows the
// device and the rows. Thread safety: none.
class GpuCells {
 public:
  GpuCells(GpuDevice& device, const StepRows& rows) : device_(device), rows_(rows) {}

  // After the rows have the batch of the step.
  void begin_step();

  // The references (kv::KvCellRef) of a layer's cells, by a block's number and then by KV head.
  struct Refs {
    const std::uint64_t* refs = nullptr;
    std::int64_t stride = 0;  // from a block to the next
  };
  Refs of_layer(std::int32_t group, std::int32_t layer_in_group);

  // The slices' blocks as kernels know them, by logical index; negative where one is gone.
  struct Blocks {
    std::span<const std::int32_t> numbers;
    std::span<const std::int32_t> first;  // of each slice's in `numbers`
  };
  Blocks blocks(std::int32_t group);

  // The block that a row's token goes to, and its slot in it; by row as it was planned.
  struct Places {
    const std::int32_t* blocks = nullptr;
    const std::int32_t* slots = nullptr;
  };
  Places places(std::int32_t group);

 private:
  // A layer group's references: [blocks][cells of a block], here and on the device.
  struct Directory {
    explicit Directory(GpuDevice& device) : on_device(device) {}

    std::vector<std::uint64_t> refs;
    std::vector<std::uint32_t> versions;  // by block: of what is in `refs`
    DeviceArray<std::uint64_t> on_device;
  };
  struct Group {
    explicit Group(GpuDevice& device) : of_step(device), device_blocks(device), device_slots(device) {}

    Directory* directory = nullptr;  // null: not looked at in this step
    Directory of_step;               // of blocks that nobody counts the changes of: layers take turns in them
    std::vector<std::int32_t> numbers, first;
    bool has_places = false;
    std::vector<std::int32_t> blocks, slots;
    DeviceArray<std::int32_t> device_blocks, device_slots;
  };

  Group& prepare(std::int32_t group);
  void list_step(const KvGroupView& group, Group& listed);
  void update(const KvGroupView& group, Directory& directory);
  static bool read_block(const KvGroupView& group, BlockId block, Directory& directory);

  GpuDevice& device_;
  const StepRows& rows_;
  std::vector<std::unique_ptr<Group>> groups_;
  // By the host's directory and the cells of a block in it.
  std::map<std::pair<const kv::KvCellRef*, std::int32_t>, std::unique_ptr<Directory>> directories_;
  std::vector<std::int32_t> changed_;  // blocks
};

}  // namespace kvasir::backend
