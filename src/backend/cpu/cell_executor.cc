#include "backend/cpu/cell_executor.h"

#include <algorithm>

#include "base/checked_math.h"

namespace kvasir::backend {

void CellExecutor::convert_cells(std::span<const kv::CellConversion> conversions, std::byte* memory) {
  constexpr std::int64_t kConversionsPerTask = 16;
  const auto count = static_cast<std::int64_t>(conversions.size());
  pool_.parallel_for(ceil_div(count, kConversionsPerTask), [&](std::int64_t task) {
    const std::int64_t end = std::min(count, (task + 1) * kConversionsPerTask);
    for (std::int64_t i = task * kConversionsPerTask; i < end; ++i) {
      const kv::CellConversion& conversion = conversions[static_cast<std::size_t>(i)];
      kernels_.convert_cell({.head_dim = conversion.head_dim,
                             .from = conversion.from.format(),
                             .to = conversion.to.format(),
                             .source = memory + conversion.from.offset(),
                             .target = memory + conversion.to.offset(),
                             .basis = conversion.basis,
                             .block = conversion.block});
    }
  });
}

void CellExecutor::measure_blocks(const MeasureBlocksOp& op, const KvGroupView& group) {
  const std::int32_t head_dim = group.layout.head_dim;
  const std::int64_t num_cells = group.layout.cells_per_block();
  pool_.parallel_for(num_cells, [&](std::int64_t cell) {
    for (std::size_t i = 0; i < op.blocks.size(); ++i) {
      const kv::KvCellRef ref = group.directory.at(op.blocks[i], cell);
      const std::size_t at = static_cast<std::size_t>(cell) * op.blocks.size() + i;
      float* result = op.results.data() + at;
      *result = op.longest_values[at] = 0.0f;
      if (ref.is_gone()) continue;
      kernels::CellMeasureArgs args{.head_dim = head_dim,
                                    .format = ref.format(),
                                    .cell = group.memory + ref.offset(),
                                    .basis = group.basis_of(cell),
                                    .block = op.first_block + static_cast<std::int32_t>(i),
                                    .longest_value = op.longest_values.data() + at};
      if (op.key_sums.empty()) {
        args.value_key_ratio = result;
      } else {
        args.key_sum = op.key_sums.data() + cell * head_dim;
        args.distinctness = result;
      }
      kernels_.measure_cell(args);
    }
  });
}

}  // namespace kvasir::backend
