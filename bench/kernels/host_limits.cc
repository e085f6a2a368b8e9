#include "bench/kernels/host_limits.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "bench/kernels/parallel_timing.h"
#ifdef __x86_64__
#include <immintrin.h>

#include "kernels/x86/cpu_features.h"
#include "kernels/x86/target_features.h"
#endif

namespace kvasir::bench {
namespace {

constexpr int kRepetitions = 15;
constexpr std::int64_t kDotLoops = 100'000;
constexpr int kDotsPerLoop = 12;  // independent ones: latency times throughput is 8 to 10
constexpr std::size_t kBytesPerThread = std::size_t{192} << 20;

#ifdef __x86_64__
KVASIR_TARGET_BEGIN(KVASIR_TARGET_AVX512)
void run_dots() {
  __m512i sums[kDotsPerLoop];
#pragma GCC unroll 12
  for (int j = 0; j < kDotsPerLoop; ++j) sums[j] = _mm512_setzero_si512();
  const __m512i ones = _mm512_set1_epi8(1);
  for (std::int64_t i = 0; i < kDotLoops; ++i) {
#pragma GCC unroll 12
    for (int j = 0; j < kDotsPerLoop; ++j) asm volatile("vpdpbusd %1, %1, %0" : "+v"(sums[j]) : "v"(ones));
  }
}
KVASIR_TARGET_END
#endif

// Sums one word of each cache line.
std::uint64_t read_all(const std::uint64_t* data, std::size_t count) {
  std::uint64_t sums[4] = {};
  for (std::size_t i = 0; i < count; i += 32) {
    for (std::size_t line = 0; line < 4; ++line) sums[line] += data[i + 8 * line];
  }
  return sums[0] + sums[1] + sums[2] + sums[3];
}

}  // namespace

HostLimits measure_host_limits(int num_threads) {
  HostLimits limits;
#ifdef __x86_64__
  if (detect_cpu_features().avx512_vnni) {
    const double seconds = fastest_seconds(num_threads, kRepetitions, [](int) { run_dots(); });
    limits.int8_macs_per_second = 64.0 * kDotsPerLoop * kDotLoops * num_threads / seconds;
  }
#endif
  constexpr std::size_t kCount = kBytesPerThread / sizeof(std::uint64_t);
  std::vector<std::vector<std::uint64_t>> data(num_threads, std::vector<std::uint64_t>(kCount, 1));
  std::vector<std::uint64_t> sums(num_threads);
  const double seconds = fastest_seconds(
      num_threads, kRepetitions, [&](int thread) { sums[thread] = read_all(data[thread].data(), kCount); });
  limits.read_bytes_per_second = static_cast<double>(kBytesPerThread) * num_threads / seconds;
  return limits;
}

}  // namespace kvasir::bench
