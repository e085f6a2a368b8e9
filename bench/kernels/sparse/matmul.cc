#include <cstring>

#include "bench/kernels/sparse/units.h"
#include "kernels/prefetch.h"
#ifdef __x86_64__
#include "kernels/x86/avx2/dot.h"
#include "kernels/x86/avx512/dot.h"
#endif

#ifdef __x86_64__
// A shuffle takes each kept code its activation from 16 neighbours: the place within four, and where the four begin.
KVASIR_TARGET_BEGIN(KVASIR_TARGET_AVX512)
namespace kvasir::bench::avx512 {
using namespace kernels;
using namespace kernels::avx512;

template <int kVector>
KVASIR_FORCE_INLINE __m512i chosen(CodeLanes places, const std::int8_t* q) {
  const __m512i neighbours = _mm512_broadcast_i32x4(
      _mm_loadu_si128(reinterpret_cast<const __m128i*>(q + kVector / 2 * 16)));
  const __m512i first = _mm512_set1_epi32(kVector % 2 == 0 ? 0x04040000 : 0x0c0c0808);
  const __m512i place = kVector == 0 ? places.v : _mm512_srli_epi16(places.v, 2 * kVector);
  return _mm512_shuffle_epi8(neighbours, _mm512_ternarylogic_epi32(place, _mm512_set1_epi8(3), first, 0xea));
}

// sum((code - zero) * its activation): the zero's part differs from row to row, so it takes as many products again.
template <int kBits>
KVASIR_FORCE_INLINE IntLanes sparse_dot(const CodeLanes* codes, CodeLanes places, const std::int8_t* q) {
  const __m512i zero = _mm512_set1_epi8(kBits == 8 ? INT8_MIN : 8);
  const __m512i x[4] = {chosen<0>(places, q), chosen<1>(places, q), chosen<2>(places, q),
                        chosen<3>(places, q)};
  __m512i sum = _mm512_setzero_si512(), of_zero = _mm512_setzero_si512();
#pragma GCC unroll 4
  for (int j = 0; j < 4; ++j) {
    sum = _mm512_dpbusd_epi32(sum, codes[j].v, x[j]);
    of_zero = _mm512_dpbusd_epi32(of_zero, zero, x[j]);
  }
  return {_mm512_sub_epi32(sum, of_zero)};
}

#include "bench/kernels/sparse/matmul-inl.h"
}  // namespace kvasir::bench::avx512
KVASIR_TARGET_END

KVASIR_TARGET_BEGIN(KVASIR_TARGET_AVX2)
namespace kvasir::bench::avx2 {
using namespace kernels;
using namespace kernels::avx2;

template <int kVector>
KVASIR_FORCE_INLINE __m256i chosen(CodeLanes places, const std::int8_t* q) {
  const __m256i neighbours = _mm256_broadcastsi128_si256(
      _mm_loadu_si128(reinterpret_cast<const __m128i*>(q + kVector / 2 * 16)));
  const __m256i first = _mm256_set1_epi32(kVector % 2 == 0 ? 0x04040000 : 0x0c0c0808);
  const __m256i place = kVector == 0 ? places.v : _mm256_srli_epi16(places.v, 2 * kVector);
  return _mm256_shuffle_epi8(neighbours,
                             _mm256_or_si256(_mm256_and_si256(place, _mm256_set1_epi8(3)), first));
}

template <int kBits>
KVASIR_FORCE_INLINE IntLanes sparse_dot(const CodeLanes* codes, CodeLanes places, const std::int8_t* q) {
  const __m256i ones = _mm256_set1_epi16(1), zero = _mm256_set1_epi8(8);
  const __m256i x[4] = {chosen<0>(places, q), chosen<1>(places, q), chosen<2>(places, q),
                        chosen<3>(places, q)};
  __m256i sum = _mm256_setzero_si256();
#pragma GCC unroll 4
  for (int j = 0; j < 4; ++j) {
    if constexpr (kBits == 8) {
      sum = _mm256_add_epi32(sum, _mm256_madd_epi16(signed_products(codes[j], {x[j]}), ones));
    } else {  // at most 8 * 127 * 2 * 4 in 16 bits
      sum = _mm256_add_epi16(
          sum, _mm256_sub_epi16(_mm256_maddubs_epi16(codes[j].v, x[j]), _mm256_maddubs_epi16(zero, x[j])));
    }
  }
  return {kBits == 8 ? sum : _mm256_madd_epi16(sum, ones)};
}

#include "bench/kernels/sparse/matmul-inl.h"
}  // namespace kvasir::bench::avx2
KVASIR_TARGET_END
#endif

namespace kvasir::bench {

SparseMatmul sparse_matmul_of([[maybe_unused]] DType dtype, [[maybe_unused]] const char* isa) {
#ifdef __x86_64__
  const bool is_byte = dtype == DType::kQ8_0;
  if (!is_byte && dtype != DType::kQ4_0) return nullptr;
  if (std::strcmp(isa, "avx512") == 0)
    return is_byte ? avx512::sparse_matmul<SparseQ8_0> : avx512::sparse_matmul<SparseQ4_0>;
  if (std::strcmp(isa, "avx2") == 0)
    return is_byte ? avx2::sparse_matmul<SparseQ8_0> : avx2::sparse_matmul<SparseQ4_0>;
#endif
  return nullptr;
}

}  // namespace kvasir::bench
