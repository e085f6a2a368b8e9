// SipHash-2-4: a keyed hash whose collisions cannot be planned without the key. Source: J.-P. Aumasson, D. J.
// Bernstein, "SipHash: a fast short-input PRF", 2012.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

namespace kvasir::kv {

// Random per process, so that a client cannot aim at the prefix index's buckets.
struct SipKey {
  std::uint64_t k0 = 0;
  std::uint64_t k1 = 0;
};

class SipHash {
 public:
  explicit SipHash(SipKey key)
      : v0_(key.k0 ^ 0x736f6d6570736575u),
        v1_(key.k1 ^ 0x646f72616e646f6du),
        v2_(key.k0 ^ 0x6c7967656e657261u),
        v3_(key.k1 ^ 0x7465646279746573u) {}

  // The hash of all of `bytes`. Call once per object.
  std::uint64_t digest(std::span<const std::byte> bytes) {
    std::size_t at = 0;
    for (; at + 8 <= bytes.size(); at += 8) absorb(load(bytes.subspan(at, 8)));
    absorb(load(bytes.subspan(at)) | (static_cast<std::uint64_t>(bytes.size()) << 56));
    v2_ ^= 0xff;
    for (int i = 0; i < 4; ++i) round();
    return v0_ ^ v1_ ^ v2_ ^ v3_;
  }

 private:
  // Little-endian, short words zero-extended.
  static std::uint64_t load(std::span<const std::byte> bytes) {
    std::uint64_t word = 0;
    for (std::size_t i = 0; i < bytes.size(); ++i)
      word |= std::to_integer<std::uint64_t>(bytes[i]) << (8 * i);
    return word;
  }

  void absorb(std::uint64_t word) {
    v3_ ^= word;
    round();
    round();
    v0_ ^= word;
  }

  void round() {
    v0_ += v1_;
    v1_ = std::rotl(v1_, 13) ^ v0_;
    v0_ = std::rotl(v0_, 32);
    v2_ += v3_;
    v3_ = std::rotl(v3_, 16) ^ v2_;
    v0_ += v3_;
    v3_ = std::rotl(v3_, 21) ^ v0_;
    v2_ += v1_;
    v1_ = std::rotl(v1_, 17) ^ v2_;
    v2_ = std::rotl(v2_, 32);
  }

  std::uint64_t v0_, v1_, v2_, v3_;
};

}  // namespace kvasir::kv
