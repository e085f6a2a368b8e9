// A hash of 128 bits.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <random>
#include <string_view>
#include <utility>

namespace kvasir::grammar {

// Two lanes of splitmix64's finaliser (Steele, Lea, Flood, 2014), with seeds that each process draws anew: who writes
// grammars cannot know which collide.
//
// Thread safety: none; one for each value.
class Fingerprint {
 public:
  using Value = std::pair<std::uint64_t, std::uint64_t>;

  explicit Fingerprint(std::uint64_t kind) { add(kind); }

  void add(std::uint64_t value) {
    first_ = mix(first_ + value);
    second_ = mix(second_ ^ (value * 0xFF51AFD7ED558CCD + 0x9E3779B97F4A7C15));
  }
  void add(std::string_view text) {
    add(text.size());
    for (; !text.empty(); text.remove_prefix(std::min(text.size(), sizeof(std::uint64_t)))) {
      std::uint64_t chunk = 0;
      std::memcpy(&chunk, text.data(), std::min(text.size(), sizeof(chunk)));
      add(chunk);
    }
  }
  Value value() const { return {first_, second_}; }

 private:
  struct Seeds {
    std::uint64_t first = 0;
    std::uint64_t second = 0;
  };
  static const Seeds& seeds() {
    static const Seeds drawn = [] {
      std::random_device device;
      const auto draw = [&] { return std::uint64_t{device()} << 32 | device(); };
      const std::uint64_t first = draw();
      return Seeds{first, draw()};
    }();
    return drawn;
  }
  static std::uint64_t mix(std::uint64_t value) {
    value += 0x9E3779B97F4A7C15;
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9;
    value = (value ^ value >> 27) * 0x94D049BB133111EB;
    return value ^ value >> 31;
  }

  std::uint64_t first_ = seeds().first;
  std::uint64_t second_ = seeds().second;
};

}  // namespace kvasir::grammar
