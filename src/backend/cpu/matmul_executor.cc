#include "backend/cpu/matmul_executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"
#include "base/checked_math.h"

namespace kvasir::backend {
namespace {

using kernels::kRowsPerGroup;
constexpr std::int64_t kTokensPerTile = kernels::kTokensPerActivationTile;

// Tokens of one matmul task: enough to share the decoding of its weights. Float activations of a task fill at
// most half of a small L2 cache.
constexpr std::int64_t kTokensPerTask = 128;
constexpr std::int64_t kFloatBytesPerTask = 256 << 10;
// A worker that is done waits for the others' last tasks, so tasks are small: a 32nd of a worker's part, but
// not so small that taking one costs more than its work.
constexpr std::int64_t kTasksPerWorker = 32;
constexpr std::int64_t kMinTaskBytes = 12 << 10;
constexpr std::int64_t kMaxGroupsPerTask = 32;

}  // namespace

// The matrix without its bytes.
Result<std::unique_ptr<CpuMatrix>> MatmulExecutor::lay_out(const TensorView& tensor, MatrixUse use) const {
  auto matrix = std::make_unique<CpuMatrix>();
  matrix->num_rows = tensor.num_rows();
  matrix->row_length = tensor.row_length();
  matrix->dtype = tensor.dtype;
  matrix->num_groups = ceil_div<std::int64_t>(tensor.num_rows(), kRowsPerGroup);
  if (use == MatrixUse::kArgmaxHead && tensor.dtype == DType::kQ8_0 && precision_ == Precision::kExact) {
    matrix->nibble_planes = &kernels_.nibble_planes;
  }
  if (use == MatrixUse::kByteAdapter) matrix->format = &kernels_.byte_columns;
  const std::int64_t k = tensor.row_length();
  const auto* planes = matrix->nibble_planes;
  matrix->group_bytes =
      planes != nullptr ? planes->high_group_bytes(k) : format_of(*matrix).packed_group_bytes(k);
  const std::int64_t low_bytes = planes != nullptr ? planes->low_group_bytes(k) : 0;
  const auto bytes = checked_mul(matrix->num_groups, matrix->group_bytes + low_bytes);
  if (!bytes) {
    return make_error(ErrorKind::kBadFile, fmt::format("tensor {}: too large to pack", tensor.name));
  }
  matrix->packed_bytes = *bytes;
  return matrix;
}

void MatmulExecutor::set_bytes(const std::byte* packed, CpuMatrix& matrix, MatrixUse use) {
  matrix.packed = packed;
  if (matrix.nibble_planes != nullptr) matrix.low = packed + matrix.num_groups * matrix.group_bytes;
  if (use == MatrixUse::kAdapter || use == MatrixUse::kByteAdapter) return;  // Backend::expect_adapters() says what they read; ops may run meanwhile
  if (format_of(matrix).reads_floats) {
    (use == MatrixUse::kExperts ? expert_float_widths_ : float_widths_).insert(matrix.row_length);
  } else {
    quantized_widths_.insert(matrix.row_length);
  }
}

Result<std::unique_ptr<Matrix>> MatmulExecutor::make_matrix(const TensorView& tensor, MatrixUse use,
                                                            MemorySource& memory) {
  KVASIR_TRY(auto matrix, lay_out(tensor, use));
  KVASIR_TRY(matrix->memory, memory.allocate(matrix->packed_bytes));
  set_bytes(matrix->memory.data(), *matrix, use);
  return matrix;
}

Result<std::unique_ptr<Matrix>> MatmulExecutor::adopt_matrix(const TensorView& tensor, MatrixUse use,
                                                             std::span<const std::byte> packed) {
  KVASIR_TRY(auto matrix, lay_out(tensor, use));
  const auto address = reinterpret_cast<std::uintptr_t>(packed.data());
  if (std::ssize(packed) != matrix->packed_bytes || address % AlignedBuffer::kAlignment != 0) {
    return make_error(ErrorKind::kBadFile, fmt::format("tensor {}: needs {} packed bytes, {} are there",
                                                       tensor.name, matrix->packed_bytes, packed.size()));
  }
  set_bytes(packed.data(), *matrix, use);
  return matrix;
}

Result<PackedSize> MatmulExecutor::packed_size(const TensorView& tensor, MatrixUse use) const {
  KVASIR_TRY(const auto matrix, lay_out(tensor, use));
  PackedSize size{.num_bytes = matrix->packed_bytes, .reads_floats = format_of(*matrix).reads_floats};
  if (matrix->nibble_planes != nullptr) {
    size.skipped_bytes = matrix->packed_bytes - matrix->num_groups * matrix->group_bytes;
  }
  return size;
}

// A group of the rows, as the matrix's group `at` in all of its bytes.
void MatmulExecutor::pack_group(const TensorView& rows, std::int64_t group, std::int64_t at, const CpuMatrix& target,
                                std::byte* all_packed) const {
  const std::int64_t k = target.row_length;
  const std::int64_t file_row_bytes = row_bytes(target.dtype, k);
  const std::int64_t first = group * kRowsPerGroup;
  const auto count = static_cast<int>(std::min<std::int64_t>(kRowsPerGroup, rows.num_rows() - first));
  std::byte* const packed = all_packed + at * target.group_bytes;
  if (target.nibble_planes != nullptr) {
    std::byte* const low = all_packed + target.num_groups * target.group_bytes;
    target.nibble_planes->pack_group(rows.row(first), file_row_bytes, count, k, packed,
                                     low + at * target.nibble_planes->low_group_bytes(k));
  } else {
    format_of(target).pack_group(rows.row(first), file_row_bytes, count, k, packed);
  }
}

void MatmulExecutor::pack_rows(const TensorView& rows, std::int64_t first_row, Matrix& matrix) {
  auto& target = static_cast<CpuMatrix&>(matrix);
  CHECK(first_row % kRowsPerGroup == 0 && first_row + rows.num_rows() <= target.num_rows);
  CHECK(target.memory.size_bytes() == target.packed_bytes);
  const std::int64_t first_group = first_row / kRowsPerGroup;
  pool_.parallel_for(ceil_div<std::int64_t>(rows.num_rows(), kRowsPerGroup),
                     [&](std::int64_t group) { pack_group(rows, group, first_group + group, target, target.memory.data()); });
}

void MatmulExecutor::pack_alone(const TensorView& rows, const CpuMatrix& matrix, std::byte* packed) const {
  CHECK(rows.num_rows() == matrix.num_rows && matrix.packed == packed);
  for (std::int64_t group = 0; group < matrix.num_groups; ++group) pack_group(rows, group, group, matrix, packed);
}

MatmulCut MatmulExecutor::cut_of(const MatmulSize& size) const {
  const bool takes_panels = size.num_tokens >= kernels::kLeastPanelTokens;
  const std::int64_t exact_panel = takes_panels ? kernels::kGroupsPerPanel : 1;
  const std::int64_t panel = precision_ == Precision::kFast ? kernels::kGroupsPerW8a8Panel : exact_panel;
  const std::int64_t granule = panel * size.tile_groups;
  const std::int64_t least =
      std::min(kMaxGroupsPerTask, ceil_div(kMinTaskBytes * size.num_groups, size.num_bytes));
  const std::int64_t groups = std::clamp(size.num_groups / (kTasksPerWorker * pool_.num_threads()), least,
                                         kMaxGroupsPerTask);
  std::int64_t tokens = kTokensPerTask;
  if (size.float_width > 0) {
    tokens = std::clamp<std::int64_t>(
        kFloatBytesPerTask / (4 * size.float_width) / kTokensPerTile * kTokensPerTile, kTokensPerTile,
        kTokensPerTask);
  }
  return {.groups_per_task = ceil_div(groups, granule) * granule, .tokens_per_task = tokens};
}

// The product of groups from `group` and tokens from `token`, as many of both as a task has; its outputs are
// for the caller to place.
kernels::MatmulArgs MatmulExecutor::part_of(const CpuMatrix& matrix, const CpuActivation& in,
                                            const MatmulCut& cut, std::int64_t group, std::int64_t token,
                                            std::int32_t num_rows) const {
  kernels::MatmulArgs args;
  args.weights = matrix.packed;
  args.low_weights = matrix.low;
  args.k = matrix.row_length;
  args.num_rows = matrix.num_rows;
  args.group_begin = group;
  args.group_end = std::min(matrix.num_groups, group + cut.groups_per_task);
  args.num_tokens = static_cast<std::int32_t>(std::min<std::int64_t>(cut.tokens_per_task, num_rows - token));
  args.x = in.row(token);
  args.quantized = in.is_quantized() ? in.quantized + kernels_.activation_bytes(in.width, token) : nullptr;
  return args;
}

void MatmulExecutor::multiply(const CpuMatrix& matrix, const kernels::MatmulArgs& args) const {
  (matrix.nibble_planes != nullptr ? matrix.nibble_planes->matmul : format_of(matrix).matmul)(args);
}

// Tasks are (matrix, run of row groups, run of tokens), token runs innermost so that a task's weights stay
// hot.
void MatmulExecutor::run(const CpuActivation& in, std::int32_t num_rows, std::span<const MatmulOp> ops,
                         bool accumulate, TileAddition* addition) {
  constexpr std::size_t kMaxOps = 4;
  CHECK(ops.size() <= kMaxOps);
  std::int64_t num_groups = 0, num_bytes = 0;
  for (const MatmulOp& op : ops) {
    num_groups += cpu(*op.weight).num_groups;
    num_bytes += op.weight->packed_bytes;
  }
  const bool wants_maxima = std::ranges::any_of(
      ops, [](const MatmulOp& op) { return op.tile_maxima.data != nullptr; });
  const MatmulCut cut = cut_of({.num_tokens = num_rows,
                                .float_width = in.is_quantized() ? 0 : in.width,
                                .num_groups = num_groups,
                                .num_bytes = num_bytes,
                                .tile_groups = wants_maxima ? kLogitsPerTile / kRowsPerGroup : 1});
  const std::int64_t token_tasks = ceil_div<std::int64_t>(num_rows, cut.tokens_per_task);
  std::array<std::int64_t, kMaxOps + 1> first_task{};
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const std::int64_t group_tasks = ceil_div(cpu(*ops[i].weight).num_groups, cut.groups_per_task);
    first_task[i + 1] = first_task[i] + token_tasks * group_tasks;
  }
  // Calls visit(op, task of that op) for a task.
  const auto with_place = [&](std::int64_t task, const auto& visit) {
    std::size_t i = 0;
    while (task >= first_task[i + 1]) ++i;
    return visit(ops[i], task - first_task[i]);
  };
  const std::int64_t num_tasks = first_task[ops.size()];
  prefetcher_.announce(num_tasks, [&](std::int64_t task) {
    return with_place(task, [&](const MatmulOp& op, std::int64_t place) {
      const CpuMatrix& matrix = cpu(*op.weight);
      return matrix.packed + place / token_tasks * cut.groups_per_task * matrix.group_bytes;
    });
  });
  pool_.parallel_for(num_tasks, [&](std::int64_t task) {
    with_place(task, [&](const MatmulOp& op, std::int64_t place) {
      const std::int64_t group = place / token_tasks * cut.groups_per_task;
      const std::int64_t token = place % token_tasks * cut.tokens_per_task;
      kernels::MatmulArgs args = part_of(cpu(*op.weight), in, cut, group, token, num_rows);
      args.out = op.out.row(token);
      args.out_stride = op.out.stride;
      args.accumulate = accumulate;
      if (addition != nullptr) addition->prepare(op, args.group_begin, args.group_end);
      multiply(cpu(*op.weight), args);
      finish(op, args, token);
      if (addition != nullptr) addition->add(op, args.group_begin, args.group_end, token, args.num_tokens);
    });
  });
}

void MatmulExecutor::run_groups(const CpuActivation& in, std::int32_t num_rows, const MatmulOp& op,
                                std::span<const std::int32_t> groups) {
  const CpuMatrix& matrix = cpu(*op.weight);
  CHECK(op.tile_maxima.data == nullptr);  // a tile is more than a group
  const auto num_groups = std::ssize(groups);
  const std::int64_t group_bytes = ceil_div(matrix.packed_bytes, matrix.num_groups);
  const MatmulCut cut = cut_of({.num_tokens = num_rows,
                                .float_width = in.is_quantized() ? 0 : in.width,
                                .num_groups = num_groups,
                                .num_bytes = num_groups * group_bytes});
  const auto run_run = [&](std::int64_t first, std::int64_t count) {
    for (std::int64_t token = 0; token < num_rows; token += cut.tokens_per_task) {
      kernels::MatmulArgs args = part_of(matrix, in, {.groups_per_task = count, .tokens_per_task = cut.tokens_per_task},
                                         first, token, num_rows);
      args.out = op.out.row(token);
      args.out_stride = op.out.stride;
      multiply(matrix, args);
      finish(op, args, token);
    }
  };
  pool_.parallel_for(ceil_div(num_groups, cut.groups_per_task), [&](std::int64_t task) {
    const std::int64_t end = std::min(num_groups, (task + 1) * cut.groups_per_task);
    for (std::int64_t i = task * cut.groups_per_task; i < end;) {
      const std::int64_t first = groups[static_cast<std::size_t>(i)];
      std::int64_t count = 1;
      while (i + count < end && groups[static_cast<std::size_t>(i + count)] == first + count) ++count;
      run_run(first, count);
      i += count;
    }
  });
}

// Scales, adds the bias and finds the tile maxima, while the outputs are in this worker's caches.
void MatmulExecutor::finish(const MatmulOp& op, const kernels::MatmulArgs& args, std::int64_t first_row) {
  const std::vector<float>& scales = op.weight->scales;
  if (scales.empty() && op.bias == nullptr && op.tile_maxima.data == nullptr) return;
  const std::int64_t begin = args.group_begin * kRowsPerGroup;
  const std::int64_t end = std::min(args.num_rows, args.group_end * kRowsPerGroup);
  for (std::int64_t row = first_row; row < first_row + args.num_tokens; ++row) {
    float* out = op.out.row(row) + begin;
    if (!scales.empty()) kernels_.scale(out, scales.front(), end - begin, out);
    if (op.bias != nullptr) kernels_.add(out, op.bias + begin, end - begin, out);
    if (op.tile_maxima.data != nullptr)
      kernels_.tile_maxima(out, end - begin, op.tile_maxima.row(row) + begin / kLogitsPerTile);
  }
}

}  // namespace kvasir::backend
