// A small generator whose stream is the same on every platform (SplitMix64, Steele et al. 2014).
#pragma once

#include <cstdint>
#include <span>

namespace kvasir::sim {

constexpr std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  std::uint64_t z = a ^ (b + 0x9e3779b97f4a7c15u + (a << 6) + (a >> 2));
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

class SeededRandom {
 public:
  explicit SeededRandom(std::uint64_t seed) : state_(mix(seed, 1)) {}

  std::uint64_t bits() { return mix(state_ += 0x9e3779b97f4a7c15u, 0); }
  // Uniform in [low, high].
  std::int32_t between(std::int32_t low, std::int32_t high) {
    return low + static_cast<std::int32_t>(bits() % static_cast<std::uint64_t>(high - low + 1));
  }
  bool percent(std::int32_t probability) { return between(0, 99) < probability; }
  template <class T>
  T pick(std::span<const T> values) {
    return values[bits() % values.size()];
  }

 private:
  std::uint64_t state_;
};

}  // namespace kvasir::sim
