#include "sampling/stages/allowed_tokens.h"

#include <algorithm>
#include <cstddef>
#include <limits>

namespace kvasir::sampling {

void keep_allowed(std::span<float> logits, std::span<const std::uint64_t> allowed) {
  constexpr std::size_t kWordBits = 64;
  constexpr float kNever = -std::numeric_limits<float>::infinity();
  for (std::size_t begin = 0; begin < logits.size(); begin += kWordBits) {
    const std::size_t count = std::min(kWordBits, logits.size() - begin);
    const std::uint64_t word = begin / kWordBits < allowed.size() ? allowed[begin / kWordBits] : 0;
    if (word == ~std::uint64_t{0}) continue;
    for (std::size_t i = 0; i < count; ++i) {
      if ((word >> i & 1) == 0) logits[begin + i] = kNever;
    }
  }
}

}  // namespace kvasir::sampling
