#include <arm_neon.h>

#include "kernels/arm/kernels.h"
#include "kernels/arm/neon/probe_loops.h"

namespace kvasir::kernels::neon {
namespace {

// Without SDOT a dot product is a multiply into 16 bits, an add of neighbours, and one that widens.
std::int32_t int8_dot(std::int64_t num_rounds) {
  const int8x16_t b = vdupq_n_s8(-5);
  int8x16_t a = vdupq_n_s8(3);
  int32x4_t sums[kAccumulators];
  for (int32x4_t& sum : sums) sum = vdupq_n_s32(0);
  for (std::int64_t i = 0; i < num_rounds; ++i) {
    for (int32x4_t& sum : sums) {
      asm volatile("" : "+w"(a));  // or the product, always the same, would be taken out of the loop
      const int16x8_t low = vmull_s8(vget_low_s8(a), vget_low_s8(b));
      sum = vpadalq_s16(sum, vpaddq_s16(low, vmull_high_s8(a, b)));
    }
  }
  return sum_of(sums);
}

}  // namespace

const ProbeLoops kProbeLoops = {.read = read,
                                .int8_dot = int8_dot,
                                .int8_macs_per_round = 16 * kAccumulators,
                                .fp32_fma = fp32_fma,
                                .fp32_flops_per_round = 2 * 4 * kAccumulators};

}  // namespace kvasir::kernels::neon
