#include <cstring>

#include "kernels/ref/kernels.h"

namespace kvasir::kernels::ref {
namespace {

constexpr int kAccumulators = 8;
constexpr int kMacs = 64;

std::uint64_t read(const void* data, std::int64_t num_bytes) {
  const auto* bytes = static_cast<const unsigned char*>(data);
  std::uint64_t sums[kAccumulators] = {};
  for (std::int64_t i = 0; i < num_bytes; i += 8 * kAccumulators) {
    for (int j = 0; j < kAccumulators; ++j) {
      std::uint64_t word = 0;
      std::memcpy(&word, bytes + i + 8 * j, sizeof word);
      sums[j] += word;
    }
  }
  std::uint64_t sum = 0;
  for (const std::uint64_t part : sums) sum += part;
  return sum;
}

std::int32_t int8_dot(std::int64_t num_rounds) {
  std::uint8_t a[kMacs];
  std::int8_t b[kMacs];
  std::memset(a, 3, sizeof a);
  std::memset(b, -5, sizeof b);
  std::uint32_t sum = 0;
  for (std::int64_t i = 0; i < num_rounds; ++i) {
    asm volatile("" : : "r"(a), "r"(b) : "memory");  // or every round would be the same product
    for (int j = 0; j < kMacs; ++j)
      sum += static_cast<std::uint32_t>(std::int32_t{a[j]} * std::int32_t{b[j]});
  }
  return static_cast<std::int32_t>(sum);
}

float fp32_fma(std::int64_t num_rounds) {
  const volatile float factor = 0.5f;  // not known when this is compiled
  const float x = factor;
  float sums[kAccumulators] = {};
  for (std::int64_t i = 0; i < num_rounds; ++i) {
    for (float& sum : sums) sum = sum * x + x;
  }
  float sum = 0.0f;
  for (const float part : sums) sum += part;
  return sum;
}

}  // namespace

const ProbeLoops kProbeLoops = {.read = read,
                                .int8_dot = int8_dot,
                                .int8_macs_per_round = kMacs,
                                .fp32_fma = fp32_fma,
                                .fp32_flops_per_round = 2 * kAccumulators};

}  // namespace kvasir::kernels::ref
