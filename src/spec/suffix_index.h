// Where the end of a text occurred before in it: what came behind is a guess of what comes next.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kvasir/ids.h"

namespace kvasir::spec {

// Positions by the two tokens that end there, the latest first. append() and longest_match() take a time that does not
// grow with the text. About 20 bytes a token, for the newest kMaxTokens at most.
//
// Thread safety: none.
class SuffixIndex {
 public:
  static constexpr std::size_t kMaxTokens = 32'768;
  static constexpr std::int32_t kMaxMatch = 64;       // tokens that are compared
  static constexpr std::int32_t kMaxCandidates = 32;  // earlier places that are looked at

  void append(std::span<const TokenId> tokens);

  // The end of the text that occurred before, of at least two tokens; the longest, of equal ones the latest.
  struct Match {
    std::int32_t length = 0;  // 0: there is none
    std::size_t next = 0;     // place of the token behind the earlier occurrence
  };
  Match longest_match() const;
  // The same for the end of another text: where it occurs in this one.
  Match longest_match_of(std::span<const TokenId> text) const;
  // Appends `num_tokens` guesses to `draft`: what came behind the earlier occurrence. A text that repeats itself goes on so.
  void continue_match(const Match& match, std::int32_t num_tokens, std::vector<TokenId>& draft) const;

  std::span<const TokenId> tokens() const { return tokens_; }

 private:
  std::size_t bucket_of(TokenId before_last, TokenId last) const;
  std::size_t bucket_at(std::size_t position) const { return bucket_of(tokens_[position - 1], tokens_[position]); }
  Match longest_of_chain(std::int32_t candidate, std::span<const TokenId> text) const;
  void insert(std::size_t position);
  void rebuild(std::size_t num_buckets);

  std::vector<TokenId> tokens_;
  std::vector<std::int32_t> earlier_;  // of each position the one before it in its bucket; -1: none
  std::vector<std::int32_t> latest_;   // of each bucket; a power of two of them
};

}  // namespace kvasir::spec
