// Merging the chunks of a row in order (kernels/generic/attention/merge-inl.h): a block of threads a row, a thread some
// channels.
#include "backend/cuda/kernels/exp_rn.h"
#include "backend/cuda/kernels/launchers.h"

namespace kvasir::cuda {
namespace {

constexpr int kThreads = 64;

struct Chunks {
  std::int64_t first, stride;
  int count;
};

KVASIR_DEVICE float largest_score(const AttentionMergeArgs& args, const Chunks& chunks, std::int64_t row) {
  float largest = args.sinks == nullptr ? -simt::infinity() : simt::load(args.sinks + row % args.num_heads);
  for (int c = 0; c < chunks.count; ++c) {
    const std::int64_t i = chunks.first + c * chunks.stride;
    const float of_chunk = simt::load(args.max + i);
    if (simt::load(args.sum + i) != 0.0f && of_chunk > largest) largest = of_chunk;
  }
  return largest;
}

KVASIR_KERNEL(kThreads) void attention_merge_kernel(AttentionMergeArgs args) {
  const std::int64_t row = simt::block_index().x;
  const Chunks chunks = {simt::load(args.first + row), simt::load(args.stride + row),
                         simt::load(args.num_chunks + row)};
  const bool is_alone = chunks.count == 1 && args.sinks == nullptr;
  const float row_max = largest_score(args, chunks, row);
  float sum = 0.0f;
  for (int c = 0; c < chunks.count; ++c) {
    const std::int64_t i = chunks.first + c * chunks.stride;
    const float of_chunk = simt::load(args.sum + i);
    const float weight = of_chunk == 0.0f ? 0.0f : exp_rn(simt::load(args.max + i) - row_max);
    sum = is_alone ? of_chunk : simt::fma_rn(weight, of_chunk, sum);
  }
  if (args.sinks != nullptr) sum = sum + exp_rn(simt::load(args.sinks + row % args.num_heads) - row_max);
  const float inverse = sum == 0.0f ? 1.0f : simt::div_rn(1.0f, sum);
  for (int d = simt::thread_index(); d < args.head_dim; d += kThreads) {
    float total = 0.0f;
    for (int c = 0; c < chunks.count; ++c) {
      const std::int64_t i = chunks.first + c * chunks.stride;
      const float partial = simt::load(args.out + i * args.head_dim + d);
      const float weight = simt::load(args.sum + i) == 0.0f ? 0.0f
                                                            : exp_rn(simt::load(args.max + i) - row_max);
      total = is_alone ? partial : simt::fma_rn(weight, partial, total);
    }
    simt::store(args.merged + row * args.head_dim + d, total * inverse);
  }
  if (simt::thread_index() > 0) return;
  simt::store(args.row_max + row, row_max);
  simt::store(args.total_sum + row, sum);
}

}  // namespace

void attention_merge(simt::Device& device, const AttentionMergeArgs& args) {
  simt::launch<attention_merge_kernel>(device, {static_cast<std::uint32_t>(args.num_rows)}, kThreads, 0,
                                       args);
}

}  // namespace kvasir::cuda
