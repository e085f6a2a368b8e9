#include <immintrin.h>

#include "kernels/x86/kernels.h"
#include "kernels/x86/target_features.h"

KVASIR_TARGET_BEGIN(KVASIR_TARGET_AVX2)
namespace kvasir::kernels::avx2 {
namespace {

constexpr int
    kStreams = 4;  // each its own quarter of the data: a page crossing of one does not stop the rest
constexpr int kAccumulators = 12;  // of 16 registers
static_assert(kReadGranuleBytes % (kStreams * 64) == 0);

std::uint64_t read(const void* data, std::int64_t num_bytes) {
  const auto* bytes = static_cast<const char*>(data);
  const std::int64_t stream_bytes = num_bytes / kStreams;
  __m256i sums[2 * kStreams];
  for (__m256i& sum : sums) sum = _mm256_setzero_si256();
  for (std::int64_t i = 0; i < stream_bytes; i += 64) {
    for (int stream = 0; stream < kStreams; ++stream) {
      const auto* const line = reinterpret_cast<const __m256i*>(bytes + stream * stream_bytes + i);
      sums[2 * stream] = _mm256_add_epi64(sums[2 * stream], _mm256_load_si256(line));
      sums[2 * stream + 1] = _mm256_add_epi64(sums[2 * stream + 1], _mm256_load_si256(line + 1));
    }
  }
  __m256i sum = sums[0];
  for (int i = 1; i < 2 * kStreams; ++i) sum = _mm256_add_epi64(sum, sums[i]);
  return static_cast<std::uint64_t>(_mm256_extract_epi64(sum, 0));
}

// Without VNNI a dot product is a multiply that adds pairs, a second one that widens, and an add.
std::int32_t int8_dot(std::int64_t num_rounds) {
  const __m256i ones = _mm256_set1_epi16(1);
  const __m256i b = _mm256_set1_epi8(-5);
  __m256i a = _mm256_set1_epi8(3);
  __m256i sums[kAccumulators];
  for (__m256i& sum : sums) sum = _mm256_setzero_si256();
  for (std::int64_t i = 0; i < num_rounds; ++i) {
    for (__m256i& sum : sums) {
      asm volatile("" : "+x"(a));  // or the product, always the same, would be taken out of the loop
      sum = _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_maddubs_epi16(a, b), ones));
    }
  }
  __m256i sum = sums[0];
  for (int i = 1; i < kAccumulators; ++i) sum = _mm256_add_epi32(sum, sums[i]);
  return _mm256_cvtsi256_si32(sum);
}

float fp32_fma(std::int64_t num_rounds) {
  const __m256 x = _mm256_set1_ps(0.5f);
  __m256 sums[kAccumulators];
  for (__m256& sum : sums) sum = _mm256_setzero_ps();
  for (std::int64_t i = 0; i < num_rounds; ++i) {
    for (__m256& sum : sums) sum = _mm256_fmadd_ps(sum, x, x);
  }
  __m256 sum = sums[0];
  for (int i = 1; i < kAccumulators; ++i) sum = _mm256_add_ps(sum, sums[i]);
  return _mm256_cvtss_f32(sum);
}

}  // namespace

const ProbeLoops kProbeLoops = {.read = read,
                                .int8_dot = int8_dot,
                                .int8_macs_per_round = 32 * kAccumulators,
                                .fp32_fma = fp32_fma,
                                .fp32_flops_per_round = 2 * 8 * kAccumulators};

}  // namespace kvasir::kernels::avx2
KVASIR_TARGET_END
