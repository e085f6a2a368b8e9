// Counter-based random numbers: the n-th number of a stream, without state.
//
// Philox4x32-10 of Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3" (SC'11).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace kvasir::sampling {

using PhiloxCounter = std::array<std::uint32_t, 4>;
using PhiloxKey = std::array<std::uint32_t, 2>;

constexpr PhiloxCounter philox4x32(PhiloxCounter counter, PhiloxKey key) {
  constexpr int kRounds = 10;
  for (int round = 0; round < kRounds; ++round) {
    const std::uint64_t product0 = std::uint64_t{0xD2511F53} * counter[0];
    const std::uint64_t product1 = std::uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<std::uint32_t>(product1 >> 32) ^ counter[1] ^ key[0],
               static_cast<std::uint32_t>(product1),
               static_cast<std::uint32_t>(product0 >> 32) ^ counter[3] ^ key[1],
               static_cast<std::uint32_t>(product0)};
    key = {key[0] + 0x9E3779B9u, key[1] + 0xBB67AE85u};
  }
  return counter;
}

// The use of a draw. Those of one position are independent.
enum class Draw : std::uint32_t {
  kToken,       // the token, where no guess is checked by residual sampling: the key of its GumbelNoise
  kGuess,       // a draft model's guess
  kAcceptance,  // whether the guess counts
  kResidual,    // the token in place of one that does not
};

// 128 bits: those for token number `position` of choice `choice` of a seeded request. They depend on nothing else, so
// batching, preemption and the other choices do not move them.
constexpr PhiloxCounter draw_bits(std::uint64_t seed, std::uint32_t choice, std::uint64_t position, Draw draw) {
  const PhiloxKey key = {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)};
  return philox4x32({static_cast<std::uint32_t>(position), static_cast<std::uint32_t>(position >> 32), choice,
                     static_cast<std::uint32_t>(draw)},
                    key);
}

// A number of them, uniform in [0, 1), 53 bits.
constexpr double uniform_draw(std::uint64_t seed, std::uint32_t choice, std::uint64_t position, Draw draw) {
  const PhiloxCounter bits = draw_bits(seed, choice, position, draw);
  const std::uint64_t mantissa = (std::uint64_t{bits[0]} << 32 | bits[1]) >> 11;
  return static_cast<double>(mantissa) * 0x1p-53;
}

}  // namespace kvasir::sampling
