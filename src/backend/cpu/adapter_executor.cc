#include "backend/cpu/adapter_executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <utility>

#include "base/checked_math.h"
#include "base/half.h"
#include "tensor/tensor_view.h"

namespace kvasir::backend {
namespace {

// Products of one segment that the caller does alone: handing them over would cost more.
constexpr std::int64_t kInlineProducts = 1 << 16;
constexpr std::int32_t kRowsPerSegment = 64;
constexpr float kHalfLimit = 65520.0f;  // from here on a half is infinite

std::int64_t padded_rank(std::int32_t rank) { return ceil_div<std::int64_t>(rank, kRowsPerGroup) * kRowsPerGroup; }

DType dtype_of(const AdapterPart& part) { return cpu(*part.weight).dtype == DType::kF32 ? DType::kF32 : DType::kF16; }

TensorView matrix_view(DType dtype, std::int64_t row_length, std::int64_t num_rows, const void* numbers) {
  return {.name = "adapter",
          .dtype = dtype,
          .rank = 2,
          .shape = {row_length, num_rows, 1, 1},
          .data = static_cast<const std::byte*>(numbers)};
}

kernels::MatmulArgs args_of(const CpuMatrix& matrix, const float* x, std::int32_t num_rows) {
  kernels::MatmulArgs args;
  args.weights = matrix.packed;
  args.k = matrix.row_length;
  args.num_rows = matrix.num_rows;
  args.group_end = matrix.num_groups;
  args.num_tokens = num_rows;
  args.x = x;
  return args;
}

}  // namespace

Result<std::unique_ptr<CpuMatrix>> AdapterExecutor::pack(const std::vector<float>& numbers, std::int64_t row_length,
                                                         DType dtype, MemorySource& memory) {
  std::vector<std::uint16_t> halves;
  if (dtype == DType::kF16) {
    const auto is_beyond = [](float number) { return std::abs(number) >= kHalfLimit; };
    if (const auto beyond = std::ranges::find_if(numbers, is_beyond); beyond != numbers.end()) {
      return make_error(ErrorKind::kBadFile, fmt::format("a number is {}, halves end at 65504", *beyond));
    }
    halves.reserve(numbers.size());
    std::ranges::transform(numbers, std::back_inserter(halves), float_to_half);
  }
  const void* const data = dtype == DType::kF16 ? static_cast<const void*>(halves.data()) : numbers.data();
  const TensorView tensor = matrix_view(dtype, row_length, std::ssize(numbers) / row_length, data);
  KVASIR_TRY(auto made, matmuls_.make_matrix(tensor, MatrixUse::kAdapter, memory));
  std::unique_ptr<CpuMatrix> matrix(static_cast<CpuMatrix*>(made.release()));
  matmuls_.pack_alone(tensor, *matrix);
  return matrix;
}

std::int64_t AdapterExecutor::adapter_bytes(std::span<const AdapterPart> parts) const {
  std::int64_t bytes = 0;
  for (const AdapterPart& part : parts) {
    const std::int64_t inputs = part.weight->row_length, outputs = part.weight->num_rows, rank = padded_rank(part.rank);
    for (const auto& [length, rows] : {std::pair(inputs, rank), std::pair(rank, outputs)}) {
      const auto size = matmuls_.packed_size(matrix_view(dtype_of(part), length, rows, nullptr), MatrixUse::kAdapter);
      bytes += size ? size->num_bytes : 0;  // one that is too large to pack is no adapter
    }
  }
  return bytes;
}

Result<std::unique_ptr<Adapter>> AdapterExecutor::make_adapter(std::span<const AdapterPart> parts, MemorySource& memory) {
  auto adapter = std::make_unique<CpuAdapter>();
  for (const AdapterPart& part : parts) {
    const std::int64_t inputs = part.weight->row_length, outputs = part.weight->num_rows, rank = padded_rank(part.rank);
    std::vector<float> a(static_cast<std::size_t>(rank * inputs)), b(static_cast<std::size_t>(outputs * rank));
    std::ranges::copy(part.a, a.begin());
    for (std::int64_t row = 0; row < outputs; ++row) {
      std::ranges::copy(part.b.subspan(static_cast<std::size_t>(row * part.rank), static_cast<std::size_t>(part.rank)),
                        b.begin() + row * rank);
    }
    CpuAdapter::LowRank& made = adapter->parts[part.weight];
    made.factor = part.factor;
    KVASIR_TRY(made.a, pack(a, inputs, dtype_of(part), memory));
    KVASIR_TRY(made.b, pack(b, rank, dtype_of(part), memory));
    adapter->num_bytes += made.a->packed_bytes + made.b->packed_bytes;
  }
  return adapter;
}

void AdapterExecutor::find_segments(std::span<const MatmulOp> ops) {
  segments_.clear();
  std::int64_t num_inner = 0;
  const std::span<const BatchSequence> slices = rows_.batch().sequences;
  for (std::size_t i = 0; i < slices.size();) {
    const ScaledAdapter used = slices[i].adapter;
    const auto* adapter = static_cast<const CpuAdapter*>(used.adapter);
    const std::int32_t first = slices[i].first_row;
    std::int32_t end = first;
    for (; i < slices.size() && slices[i].adapter == used; ++i) end = slices[i].first_row + slices[i].num_rows;
    if (adapter == nullptr) continue;
    for (const MatmulOp& op : ops) {
      const auto found = adapter->parts.find(op.weight);
      if (found == adapter->parts.end()) continue;
      for (std::int32_t row = first; row < end; row += kRowsPerSegment) {
        const std::int32_t num_rows = std::min(kRowsPerSegment, end - row);
        segments_.push_back({.part = &found->second, .op = &op, .scale = used.scale, .first_row = row, .num_rows = num_rows});
        num_inner += num_rows * found->second.a->num_rows;
      }
    }
  }
  inner_.resize(std::max(inner_.size(), static_cast<std::size_t>(num_inner)));
  float* inner = inner_.data();
  for (Segment& segment : segments_) {
    segment.inner = inner;
    inner += segment.num_rows * segment.part->a->num_rows;
  }
}

void AdapterExecutor::shrink(const CpuActivation& in, const Segment& segment) const {
  kernels::MatmulArgs args = args_of(*segment.part->a, in.row(segment.first_row), segment.num_rows);
  args.out = segment.inner;
  args.out_stride = segment.part->a->num_rows;
  matmuls_.multiply(*segment.part->a, args);
  kernels_.scale(segment.inner, segment.part->factor * segment.scale, segment.num_rows * args.out_stride, segment.inner);
}

void AdapterExecutor::expand(const Segment& segment) const {
  kernels::MatmulArgs args = args_of(*segment.part->b, segment.inner, segment.num_rows);
  args.out = segment.op->out.row(segment.first_row);
  args.out_stride = segment.op->out.stride;
  args.accumulate = true;
  matmuls_.multiply(*segment.part->b, args);
}

void AdapterExecutor::add(const CpuActivation& in, std::span<const MatmulOp> ops) {
  const auto has_adapter = [](const BatchSequence& slice) { return slice.adapter.adapter != nullptr; };
  if (std::ranges::none_of(rows_.batch().sequences, has_adapter)) return;
  find_segments(ops);
  const auto add_segment = [&](std::int64_t i) {
    const Segment& segment = segments_[static_cast<std::size_t>(i)];
    shrink(in, segment);
    expand(segment);
  };
  std::int64_t num_products = 0;
  for (const Segment& segment : segments_) {
    num_products += segment.num_rows * segment.part->a->num_rows * (segment.part->a->row_length + segment.part->b->num_rows);
  }
  if (num_products <= kInlineProducts || segments_.size() == 1) {
    for (std::int64_t i = 0; i < std::ssize(segments_); ++i) add_segment(i);
  } else {
    pool_.parallel_for(std::ssize(segments_), add_segment);
  }
}

}  // namespace kvasir::backend
