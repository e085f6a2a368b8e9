// How a budget is shared out over the layers and KV heads of a group.
#pragma once

#include <cstdint>
#include <vector>

#include "kv/policy/policy.h"

namespace kvasir::kv {

// Bytes that the full and other blocks of each cell may take, [view.num_cells()], together no more than
// view.allowed_bytes() each.
//
// A model finds things again through a few heads, and hardly notices what the others lose. So where the cells
// have weights, formats go to where they help most: each step down of all blocks of a cell loses the cell's
// weight times the cost of the format, and the steps that lose the least per byte are taken first until the
// budget is kept (the greedy solution of the relaxed knapsack problem; the steps are convex). Which blocks of
// a cell become how coarse is the ladder's to say. Nothing is taken below the coarsest format as long as
// another cell may become coarser; then all give alike. Without weights all cells get the same.
std::vector<std::int64_t> budgets_of_cells(const PolicyView& view);

}  // namespace kvasir::kv
