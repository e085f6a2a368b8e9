#include "backend/gpu/gpu_cells.h"

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "kernels/table.h"

namespace kvasir::backend {

void GpuCells::begin_step() {
  while (groups_.size() < rows_.batch().kv_groups.size()) groups_.push_back(std::make_unique<Group>(device_));
  for (const auto& group : groups_) {
    group->directory = nullptr;
    group->has_places = false;
  }
}

// Whether the block's cells are others than before.
bool GpuCells::read_block(const KvGroupView& group, BlockId block, Directory& directory) {
  const auto at = static_cast<std::size_t>(index_of(block));
  const std::uint32_t version = group.directory.versions[at];
  if (directory.versions[at] == version) return false;
  directory.versions[at] = version;
  const std::int32_t num_cells = group.layout.cells_per_block();
  for (std::int32_t cell = 0; cell < num_cells; ++cell) {
    directory.refs[at * static_cast<std::size_t>(num_cells) + static_cast<std::size_t>(cell)] =
        std::bit_cast<std::uint64_t>(group.directory.at(block, cell));
  }
  return true;
}

void GpuCells::update(const KvGroupView& group, Directory& directory) {
  const auto num_cells = static_cast<std::size_t>(group.layout.cells_per_block());
  std::size_t num_blocks = directory.versions.size();
  for (const std::span<const BlockId> blocks : group.blocks) {
    for (const BlockId block : blocks) {
      if (block != kHole) num_blocks = std::max(num_blocks, static_cast<std::size_t>(index_of(block)) + 1);
    }
  }
  const bool grows = num_blocks > directory.versions.size();
  if (grows) {  // by half as much again at least, for then all of it goes over
    num_blocks = std::max(num_blocks, directory.versions.size() + directory.versions.size() / 2);
    directory.versions.resize(num_blocks);
    directory.refs.resize(num_blocks * num_cells);
  }
  changed_.clear();
  for (const std::span<const BlockId> blocks : group.blocks) {
    for (const BlockId block : blocks) {
      if (block != kHole && read_block(group, block, directory)) changed_.push_back(index_of(block));
    }
  }
  if (grows) {
    directory.on_device.assign(directory.refs);
    return;
  }
  std::ranges::sort(changed_);
  for (std::size_t i = 0; i < changed_.size();) {  // neighbours go over together
    std::size_t end = i + 1;
    while (end < changed_.size() && changed_[end] == changed_[end - 1] + 1) ++end;
    const std::size_t first = static_cast<std::size_t>(changed_[i]) * num_cells;
    device_.copy_in(std::as_bytes(std::span(directory.refs).subspan(first, (end - i) * num_cells)),
                    directory.on_device.data() + first);
    i = end;
  }
}

// All cells of the step's blocks, numbered as they come.
void GpuCells::list_step(const KvGroupView& group, Group& listed) {
  const std::int32_t num_cells = group.layout.cells_per_block();
  std::vector<std::uint64_t>& refs = listed.of_step.refs;
  refs.clear();
  for (const std::span<const BlockId> blocks : group.blocks) {
    listed.first.push_back(static_cast<std::int32_t>(listed.numbers.size()));
    for (const BlockId block : blocks) {
      listed.numbers.push_back(block == kHole ? -1 : static_cast<std::int32_t>(std::ssize(refs) / num_cells));
      for (std::int32_t cell = 0; cell < num_cells && block != kHole; ++cell) {
        refs.push_back(std::bit_cast<std::uint64_t>(group.directory.at(block, cell)));
      }
    }
  }
  listed.of_step.on_device.assign(refs);
  listed.directory = &listed.of_step;
}

GpuCells::Group& GpuCells::prepare(std::int32_t group_index) {
  Group& listed = *groups_[static_cast<std::size_t>(group_index)];
  if (listed.directory != nullptr) return listed;
  const KvGroupView& group = rows_.group(group_index);
  listed.numbers.clear();
  listed.first.clear();
  if (group.directory.versions == nullptr) {
    list_step(group, listed);
    return listed;
  }
  for (const std::span<const BlockId> blocks : group.blocks) {
    listed.first.push_back(static_cast<std::int32_t>(listed.numbers.size()));
    for (const BlockId block : blocks) listed.numbers.push_back(index_of(block));  // kHole is negative
  }
  auto& kept = directories_[{group.directory.refs, group.layout.cells_per_block()}];
  if (kept == nullptr) kept = std::make_unique<Directory>(device_);
  listed.directory = kept.get();
  update(group, *listed.directory);
  return listed;
}

GpuCells::Blocks GpuCells::blocks(std::int32_t group) {
  const Group& listed = prepare(group);
  return {.numbers = listed.numbers, .first = listed.first};
}

GpuCells::Refs GpuCells::of_layer(std::int32_t group_index, std::int32_t layer_in_group) {
  const KvLayout& layout = rows_.group(group_index).layout;
  return {.refs = prepare(group_index).directory->on_device.data() + layout.cell(layer_in_group, 0),
          .stride = layout.cells_per_block()};
}

GpuCells::Places GpuCells::places(std::int32_t group_index) {
  Group& places = prepare(group_index);
  if (!places.has_places) {
    places.blocks.clear();
    places.slots.clear();
    for (std::int32_t row = 0; row < rows_.count(); ++row) {
      const std::int32_t position = rows_.position_of(row);
      const std::int32_t first = places.first[static_cast<std::size_t>(rows_.sequence_of(row))];
      places.blocks.push_back(places.numbers[static_cast<std::size_t>(first + position / kernels::kTokensPerCell)]);
      places.slots.push_back(position % kernels::kTokensPerCell);
    }
    places.device_blocks.assign(places.blocks);
    places.device_slots.assign(places.slots);
    places.has_places = true;
  }
  return {.blocks = places.device_blocks.data(), .slots = places.device_slots.data()};
}

}  // namespace kvasir::backend
