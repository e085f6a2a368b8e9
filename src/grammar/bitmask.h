// Which tokens of a vocabulary are allowed.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "grammar/bit_count.h"
#include "kvasir/ids.h"

namespace kvasir::grammar {

// One bit for each token, 64 tokens to a word.
//
// Thread safety: as of a value.
class TokenMask {
 public:
  TokenMask() = default;
  explicit TokenMask(std::int32_t num_tokens)
      : num_tokens_(num_tokens), words_((static_cast<std::size_t>(num_tokens) + 63) / 64) {}

  std::int32_t num_tokens() const { return num_tokens_; }
  std::span<const std::uint64_t> words() const { return words_; }

  void clear() { std::ranges::fill(words_, 0); }
  void set_all() {
    std::ranges::fill(words_, ~std::uint64_t{0});
    if (const int num_last = num_tokens_ % 64; num_last != 0) words_.back() = (std::uint64_t{1} << num_last) - 1;
  }
  // Requires: as many words as words() has.
  void assign(std::span<const std::uint64_t> words) { std::ranges::copy(words, words_.begin()); }
  // Requires: 0 <= token < num_tokens().
  void set(TokenId token) { words_[word_of(token)] |= bit_of(token); }
  void reset(TokenId token) { words_[word_of(token)] &= ~bit_of(token); }
  bool test(TokenId token) const { return (words_[word_of(token)] & bit_of(token)) != 0; }
  // Requires: a mask of as many tokens.
  void add(const TokenMask& other) {
    for (std::size_t i = 0; i < words_.size(); ++i) words_[i] |= other.words_[i];
  }

  std::int32_t count() const {
    std::int32_t count = 0;
    for (const std::uint64_t word : words_) count += static_cast<std::int32_t>(bit_count(word));
    return count;
  }
  // The only token that is allowed; kNoToken when there are none or several.
  TokenId only() const {
    TokenId found = kNoToken;
    for (std::size_t i = 0; i < words_.size(); ++i) {
      if (words_[i] == 0) continue;
      if (found != kNoToken || (words_[i] & (words_[i] - 1)) != 0) return kNoToken;
      found = static_cast<TokenId>(i * 64 + static_cast<std::size_t>(std::countr_zero(words_[i])));
    }
    return found;
  }

  friend bool operator==(const TokenMask&, const TokenMask&) = default;

 private:
  static std::size_t word_of(TokenId token) { return static_cast<std::size_t>(token) / 64; }
  static std::uint64_t bit_of(TokenId token) { return std::uint64_t{1} << (static_cast<std::size_t>(token) % 64); }

  std::int32_t num_tokens_ = 0;
  std::vector<std::uint64_t> words_;
};

}  // namespace kvasir::grammar
