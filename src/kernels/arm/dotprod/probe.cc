#include "kernels/arm/kernels.h"
#include "kernels/arm/neon/probe_loops.h"
#include "kernels/arm/target_features.h"

KVASIR_TARGET_BEGIN(KVASIR_TARGET_DOTPROD)
namespace kvasir::kernels::dotprod {
namespace {

using neon::kAccumulators;

std::int32_t int8_dot(std::int64_t num_rounds) {
  const int8x16_t a = vdupq_n_s8(3), b = vdupq_n_s8(-5);
  int32x4_t sums[kAccumulators];
  for (int32x4_t& sum : sums) sum = vdupq_n_s32(0);
  for (std::int64_t i = 0; i < num_rounds; ++i) {
    for (int32x4_t& sum : sums) sum = vdotq_s32(sum, a, b);
  }
  return neon::sum_of(sums);
}

}  // namespace

const ProbeLoops kProbeLoops = {.read = neon::read,
                                .int8_dot = int8_dot,
                                .int8_macs_per_round = 16 * kAccumulators,
                                .fp32_fma = neon::fp32_fma,
                                .fp32_flops_per_round = 2 * 4 * kAccumulators};

}  // namespace kvasir::kernels::dotprod
KVASIR_TARGET_END
