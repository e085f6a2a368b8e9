// Which tokens a row may choose.
#pragma once

#include <cstdint>
#include <span>

namespace kvasir::sampling {

// All tokens, or those of a mask. There is no default, so that no row loses its mask by mistake. Borrows the mask.
//
// Thread safety: immutable.
class AllowedTokens {
 public:
  static AllowedTokens all() { return AllowedTokens(true, {}); }
  // Bit i % 64 of word i / 64 is token i's. Tokens beyond the words are not allowed.
  static AllowedTokens of(std::span<const std::uint64_t> words) { return AllowedTokens(false, words); }

  bool are_all() const { return are_all_; }
  // Of a mask. Requires: !are_all().
  std::span<const std::uint64_t> words() const { return words_; }

  // Sets the logits of tokens that are not allowed to -inf.
  void apply(std::span<float> logits) const;

 private:
  AllowedTokens(bool are_all, std::span<const std::uint64_t> words) : are_all_(are_all), words_(words) {}

  bool are_all_;
  std::span<const std::uint64_t> words_;
};

}  // namespace kvasir::sampling
