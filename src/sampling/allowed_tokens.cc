#include "sampling/allowed_tokens.h"

#include <algorithm>
#include <cstddef>
#include <limits>

namespace kvasir::sampling {

void AllowedTokens::apply(std::span<float> logits) const {
  if (are_all_) return;
  constexpr std::size_t kWordBits = 64;
  constexpr float kNever = -std::numeric_limits<float>::infinity();
  for (std::size_t begin = 0; begin < logits.size(); begin += kWordBits) {
    const std::span<float> tile = logits.subspan(begin, std::min(kWordBits, logits.size() - begin));
    const std::uint64_t word = begin / kWordBits < words_.size() ? words_[begin / kWordBits] : 0;
    if (word == ~std::uint64_t{0}) continue;
    if (word == 0) {
      std::ranges::fill(tile, kNever);
      continue;
    }
    for (std::size_t i = 0; i < tile.size(); ++i) {
      if ((word >> i & 1) == 0) tile[i] = kNever;
    }
  }
}

}  // namespace kvasir::sampling
