#include <immintrin.h>

#include "kernels/x86/kernels.h"
#include "kernels/x86/target_features.h"

KVASIR_TARGET_BEGIN(KVASIR_TARGET_AVX512)
namespace kvasir::kernels::avx512 {
namespace {

constexpr int
    kStreams = 4;  // each its own quarter of the data: a page crossing of one does not stop the rest
constexpr int kAccumulators = 16;  // more than latency (5) times throughput (2 a cycle)
static_assert(kReadGranuleBytes % (kStreams * 128) == 0);

std::uint64_t read(const void* data, std::int64_t num_bytes) {
  const auto* bytes = static_cast<const char*>(data);
  const std::int64_t stream_bytes = num_bytes / kStreams;
  __m512i sums[2 * kStreams];
  for (__m512i& sum : sums) sum = _mm512_setzero_si512();
  for (std::int64_t i = 0; i < stream_bytes; i += 128) {
    for (int stream = 0; stream < kStreams; ++stream) {
      const char* const line = bytes + stream * stream_bytes + i;
      sums[2 * stream] = _mm512_add_epi64(sums[2 * stream], _mm512_load_si512(line));
      sums[2 * stream + 1] = _mm512_add_epi64(sums[2 * stream + 1], _mm512_load_si512(line + 64));
    }
  }
  __m512i sum = sums[0];
  for (int i = 1; i < 2 * kStreams; ++i) sum = _mm512_add_epi64(sum, sums[i]);
  return static_cast<std::uint64_t>(_mm512_reduce_add_epi64(sum));
}

std::int32_t int8_dot(std::int64_t num_rounds) {
  const __m512i a = _mm512_set1_epi8(3);
  const __m512i b = _mm512_set1_epi8(-5);
  __m512i sums[kAccumulators];
  for (__m512i& sum : sums) sum = _mm512_setzero_si512();
  for (std::int64_t i = 0; i < num_rounds; ++i) {
    for (__m512i& sum : sums) sum = _mm512_dpbusd_epi32(sum, a, b);
  }
  __m512i sum = sums[0];
  for (int i = 1; i < kAccumulators; ++i) sum = _mm512_add_epi32(sum, sums[i]);
  return _mm512_cvtsi512_si32(sum);
}

float fp32_fma(std::int64_t num_rounds) {
  const __m512 x = _mm512_set1_ps(0.5f);
  __m512 sums[kAccumulators];
  for (__m512& sum : sums) sum = _mm512_setzero_ps();
  for (std::int64_t i = 0; i < num_rounds; ++i) {
    for (__m512& sum : sums) sum = _mm512_fmadd_ps(sum, x, x);
  }
  __m512 sum = sums[0];
  for (int i = 1; i < kAccumulators; ++i) sum = _mm512_add_ps(sum, sums[i]);
  return _mm512_cvtss_f32(sum);
}

}  // namespace

const ProbeLoops kProbeLoops = {.read = read,
                                .int8_dot = int8_dot,
                                .int8_macs_per_round = 64 * kAccumulators,
                                .fp32_fma = fp32_fma,
                                .fp32_flops_per_round = 2 * 16 * kAccumulators};

}  // namespace kvasir::kernels::avx512
KVASIR_TARGET_END
