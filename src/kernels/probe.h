// Loops that keep one resource of a core busy and do nothing else: the yardstick that speeds are held
// against.
#pragma once

#include <cstdint>

namespace kvasir::kernels {

// The loops return something that depends on all their work, so that none of it can be left out.
struct ProbeLoops {
  // Reads num_bytes, a multiple of kReadGranuleBytes, from a 64-byte aligned address.
  std::uint64_t (*read)(const void* data, std::int64_t num_bytes);

  // num_rounds times int8_macs_per_round multiply-accumulates of unsigned by signed bytes into 32 bits.
  std::int32_t (*int8_dot)(std::int64_t num_rounds);
  std::int64_t int8_macs_per_round;

  // num_rounds times fp32_flops_per_round operations, two in each fused multiply-add.
  float (*fp32_fma)(std::int64_t num_rounds);
  std::int64_t fp32_flops_per_round;
};

inline constexpr std::int64_t kReadGranuleBytes = 1024;

// Those of the best instruction set that this host runs.
const ProbeLoops& probe_loops();

}  // namespace kvasir::kernels
