// Random numbers of the tokens at one position.
#pragma once

#include <bit>
#include <cstdint>

#include "base/portable_log.h"
#include "kvasir/ids.h"
#include "sampling/float4.h"
#include "sampling/philox.h"

namespace kvasir::sampling {

// Each token has a number v of its own, uniform in (0, 1), at each position of each choice of a seeded request.
// E = -ln(1 - v) is exponential, and -ln E is Gumbel noise. Neither the model nor the size of its vocabulary matters, so two
// models share the noise of a token.
// Integers alone make v, so it is the same on every machine. A token's place is mixed under the words of a key by two rounds
// of multiplication and exclusive or. One multiplier is a word of the key. With known ones alone, two positions whose places
// meet by chance would have numbers that resemble each other.
//
// Thread safety: immutable.
class GumbelNoise {
 public:
  GumbelNoise(std::uint64_t seed, std::uint32_t choice, std::uint64_t position)
      : GumbelNoise(draw_bits(seed, choice, position, Draw::kToken)) {}
  explicit GumbelNoise(const PhiloxCounter& key) : key_(key) {}

  // v's first 32 bits: coarse(token) * 2^-32 < v.
  std::uint32_t coarse(TokenId token) const { return mixed(place_of(token)); }
  // The same for four tokens of these place_of().
  Uint4 coarse(Uint4 places) const { return mixed(places); }
  // The places of tokens one after the other are kStride apart.
  static constexpr std::uint32_t kStride = 0x9E3779B1u;
  std::uint32_t place_of(TokenId token) const { return static_cast<std::uint32_t>(token) * kStride + key_[0]; }
  // In the same order, for machines that compare signed numbers alone.
  static Int4 as_signed(Uint4 numbers) { return std::bit_cast<Int4>(numbers ^ 0x80000000u); }

  // v, an odd multiple of 2^-53.
  double uniform(TokenId token) const {
    constexpr int kFineBits = 20;
    const std::uint64_t bits = std::uint64_t{coarse(token)} << kFineBits | fine(token) >> (64 - kFineBits);
    return static_cast<double>(bits * 2 + 1) * 0x1p-53;
  }
  // E, which is at least v.
  double exponential(TokenId token) const { return -portable_log(1.0 - uniform(token)); }

 private:
  template <typename Word>
  Word mixed(Word x) const {
    x ^= key_[1];
    x ^= x >> 16;
    x *= 0x21F0AAADu;
    x ^= x >> 15;
    x *= key_[3] | 1;
    x ^= x >> 15;
    return x ^ key_[2];
  }
  // Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014: the finaliser, under another key.
  std::uint64_t fine(TokenId token) const {
    std::uint64_t x = (std::uint64_t{key_[3]} << 32 | key_[1]) + static_cast<std::uint64_t>(token) * 0x9E3779B97F4A7C15u;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 27) * 0x94D049BB133111EBu;
    return x ^ x >> 31;
  }

  PhiloxCounter key_;
};

}  // namespace kvasir::sampling
