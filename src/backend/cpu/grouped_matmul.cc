#include "backend/cpu/grouped_matmul.h"

#include <algorithm>
#include <iterator>

#include "base/checked_math.h"

namespace kvasir::backend {
namespace {

// Equal runs of whole tiles: a short last one would decode its weights for little.
std::int64_t even_run(std::int64_t num_tokens, std::int64_t tokens_per_task) {
  const std::int64_t num_runs = std::max<std::int64_t>(
      1, (num_tokens + tokens_per_task / 2 - 1) / tokens_per_task);
  constexpr std::int64_t kTile = kernels::kTokensPerActivationTile;
  return ceil_div(ceil_div(num_tokens, num_runs), kTile) * kTile;
}

}  // namespace

// Returns the number of tasks.
std::int64_t GroupedMatmul::cut(std::span<const MatmulPart> parts) {
  std::int64_t num_groups = 0, num_bytes = 0;
  for (const MatmulPart& part : parts) {
    num_groups += part.num_groups;
    num_bytes += part.num_groups * part.weight->group_bytes;
  }
  cuts_.clear();
  std::int64_t num_tasks = 0;
  for (const MatmulPart& part : parts) {
    const MatmulCut cut = matmuls_.cut_of(
        {.num_tokens = part.num_tokens,
         .float_width = matmuls_.reads_floats(*part.weight) ? part.weight->row_length : 0,
         .num_groups = num_groups,
         .num_bytes = num_bytes});
    const std::int64_t tokens_per_task = even_run(part.num_tokens, cut.tokens_per_task);
    const std::int64_t token_tasks = ceil_div<std::int64_t>(part.num_tokens, tokens_per_task);
    cuts_.push_back({.first_task = num_tasks,
                     .groups_per_task = cut.groups_per_task,
                     .tokens_per_task = tokens_per_task,
                     .token_tasks = token_tasks});
    num_tasks += token_tasks * ceil_div(part.num_groups, cut.groups_per_task);
  }
  return num_tasks;
}

void GroupedMatmul::run_task(const MatmulPart& part, const Cut& cut, std::int64_t task) const {
  const std::int64_t group = task / cut.token_tasks * cut.groups_per_task;
  const std::int64_t token = task % cut.token_tasks * cut.tokens_per_task;
  const std::int64_t k = part.weight->row_length;
  kernels::MatmulArgs args;
  args.weights = part.weight->packed + part.first_group * part.weight->group_bytes;
  args.k = k;
  args.num_rows = std::min(part.num_groups * kernels::kRowsPerGroup,
                           part.weight->num_rows - part.first_group * kernels::kRowsPerGroup);
  args.group_begin = group;
  args.group_end = std::min(part.num_groups, group + cut.groups_per_task);
  args.num_tokens = static_cast<std::int32_t>(std::min(cut.tokens_per_task, part.num_tokens - token));
  args.x = part.x == nullptr ? nullptr : part.x + token * k;
  args.quantized = part.quantized == nullptr ? nullptr : part.quantized + kernels_.activation_bytes(k, token);
  args.out = part.out.row(token);
  args.out_stride = part.out.stride;
  matmuls_.multiply(*part.weight, args);
  if (part.bias == nullptr && part.scale == 1.0f) return;
  const std::int64_t begin = args.group_begin * kernels::kRowsPerGroup;
  const std::int64_t end = std::min(args.num_rows, args.group_end * kernels::kRowsPerGroup);
  for (std::int64_t row = token; row < token + args.num_tokens; ++row) {
    float* out = part.out.row(row) + begin;
    if (part.scale != 1.0f) kernels_.scale(out, part.scale, end - begin, out);
    if (part.bias != nullptr) kernels_.add(out, part.bias + begin, end - begin, out);
  }
}

void GroupedMatmul::run(std::span<const MatmulPart> parts) {
  const std::int64_t num_tasks = cut(parts);
  pool_.parallel_for(num_tasks, [&](std::int64_t task) {
    const auto next = std::ranges::upper_bound(cuts_, task, {}, &Cut::first_task);
    const auto part = static_cast<std::size_t>(next - cuts_.begin() - 1);
    run_task(parts[part], cuts_[part], task - cuts_[part].first_task);
  });
}

}  // namespace kvasir::backend
