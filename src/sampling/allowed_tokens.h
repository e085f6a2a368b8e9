// Which tokens a row may choose.
#pragma once

#include <cstdint>
#include <span>

#include "kvasir/ids.h"

namespace kvasir::sampling {

// All tokens, or those of a mask. There is no default, so that no row loses its mask by mistake. Borrows the mask.
//
// Thread safety: immutable.
class AllowedTokens {
 public:
  static AllowedTokens all() { return AllowedTokens(true, {}); }
  // Bit i % 64 of word i / 64 is token i's. Tokens beyond the words are not allowed. Counts up to kMany.
  static AllowedTokens of(std::span<const std::uint64_t> words);

  // More are not counted.
  static constexpr std::int32_t kMany = 513;

  bool are_all() const { return are_all_; }
  // How many are allowed, at most kMany.
  std::int32_t count() const { return count_; }
  // The one token that is allowed; kNoToken when there are none or several.
  TokenId only() const { return only_; }
  // Of a mask. Requires: !are_all().
  std::span<const std::uint64_t> words() const { return words_; }

 private:
  AllowedTokens(bool are_all, std::span<const std::uint64_t> words) : are_all_(are_all), words_(words) {}

  bool are_all_;
  std::span<const std::uint64_t> words_;
  std::int32_t count_ = kMany;
  TokenId only_ = kNoToken;
};

}  // namespace kvasir::sampling
