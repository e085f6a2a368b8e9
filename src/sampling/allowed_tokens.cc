#include "sampling/allowed_tokens.h"

#include <bit>
#include <cstddef>

namespace kvasir::sampling {

AllowedTokens AllowedTokens::of(std::span<const std::uint64_t> words) {
  AllowedTokens allowed(false, words);
  allowed.count_ = 0;
  for (std::size_t i = 0; i < words.size() && allowed.count_ < kMany; ++i) {
    for (std::uint64_t word = words[i]; word != 0 && allowed.count_ < kMany; word &= word - 1) {
      allowed.only_ = static_cast<TokenId>(i * 64 + static_cast<std::size_t>(std::countr_zero(word)));
      ++allowed.count_;
    }
  }
  if (allowed.count_ != 1) allowed.only_ = kNoToken;
  return allowed;
}

}  // namespace kvasir::sampling
