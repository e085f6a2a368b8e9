// Normalisation of rows, and of rows on their way to int8: the normalised row stays in shared memory.
#include "backend/cuda/kernels/launchers.h"
#include "backend/cuda/kernels/row_sums.h"

namespace kvasir::cuda {
namespace {

constexpr int kThreads = 128;

// Factors that every output of a row needs.
struct RowFactors {
  float mean, factor;
};

KVASIR_DEVICE RowFactors factors_of(const NormArgs& args, const float* x) {
  if (args.kind != RowNorm::kLayer) return {0.0f, rms_factor(x, args.eps, args.width)};
  const auto count = static_cast<float>(args.width);
  const float mean = simt::div_rn(sum_of<false>(x, 0.0f, args.width), count);
  const float squares = sum_of<true>(x, mean, args.width);
  if (!(squares < simt::infinity())) return {mean, simt::quiet_nan()};
  return {mean, simt::div_rn(1.0f, simt::sqrt_rn(simt::div_rn(squares, count) + args.eps))};
}

KVASIR_DEVICE float normed(const NormArgs& args, const RowFactors& row, float x, std::int64_t i) {
  const float weight = simt::load(args.weight + i);
  if (args.kind != RowNorm::kLayer) return (x * row.factor) * weight;
  return simt::fma_rn((x - row.mean) * row.factor, weight, simt::load(args.bias + i));
}

KVASIR_KERNEL(kThreads) void norm_kernel(NormArgs args) {
  const std::int64_t row = simt::block_index().x, first = simt::block_index().y * args.width;
  const float* x = args.x + row * args.x_stride + first;
  float* out = args.out + row * args.out_stride + first;
  float* shared = simt::shared<float>(0, 2);
  if (simt::warp_index() == 0) {
    const RowFactors factors = factors_of(args, x);
    if (simt::lane_index() == 0) {
      simt::store(shared, factors.mean);
      simt::store(shared + 1, factors.factor);
    }
  }
  simt::sync_block();
  const RowFactors factors = {simt::load(shared), simt::load(shared + 1)};
  for (std::int64_t i = simt::thread_index(); i < args.width; i += kThreads) {
    const float value = normed(args, factors, simt::load(x + i), i);
    simt::store(out + i, args.kind == RowNorm::kRmsAdd ? simt::load(out + i) + value : value);
  }
}

}  // namespace

void norm(simt::Device& device, const NormArgs& args) {
  const simt::Dim grid = {static_cast<std::uint32_t>(args.num_rows), static_cast<std::uint32_t>(args.num_parts)};
  simt::launch<norm_kernel>(device, grid, kThreads, 2 * sizeof(float), args);
}

}  // namespace kvasir::cuda
