// Cuts a text at its special tokens, before anything else looks at it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kvasir/ids.h"
#include "text/vocab.h"

namespace kvasir::text {

// A stretch of plain text, or one special token (then the text is the token's, with white space it strips).
struct Fragment {
  std::string_view text;
  TokenId token = kNoToken;
};

// A token that is matched as a whole, and how.
struct SpecialToken {
  TokenId id = kNoToken;
  std::string text = {};
  bool is_hidden = false;     // see Vocab::is_hidden
  bool strips_left = false;   // white space before it goes with it
  bool strips_right = false;  // white space behind it goes with it
  bool single_word = false;   // it matches only where no word character is beside it
};

// These tokens as they stand in the vocabulary. Requires: the ids are inside of it.
std::vector<SpecialToken> special_tokens_of(const Vocab& vocab, const std::vector<TokenId>& ids);
// The same of all tokens that Vocab::is_special names.
std::vector<SpecialToken> special_tokens_in(const Vocab& vocab);

// Of tokens that overlap in a text the one that begins first is matched, and of several the longest. The library
// `tokenizers` and SentencePiece do so; llama.cpp looks for one token after the other, the longest first.
//
// One pass with a trie: time is linear in the text, times the length of the longest token in the worst case.
//
// Thread safety: immutable.
class SpecialMatcher {
 public:
  explicit SpecialMatcher(std::vector<SpecialToken> tokens);

  // The fragments in order; together they are the text. Views point into the text. No hidden token (see
  // Vocab::is_hidden) begins at one of the byte positions in `plain_at`, which ascend.
  std::vector<Fragment> split(std::string_view text, std::span<const std::size_t> plain_at = {}) const;

  // Where a hidden token begins, or may begin if more text follows; white space at the end may go before it
  // does. Ascending byte positions.
  std::vector<std::size_t> hidden_starts(std::string_view text) const;

 private:
  static constexpr std::int32_t kNone = -1;

  struct Node {  // of the trie; children of one node are chained as siblings
    char byte = 0;
    std::int32_t rank = kNone;  // of the token that ends here
    std::int32_t first_child = kNone;
    std::int32_t next_sibling = kNone;
    bool leads_to_hidden = false;  // a hidden token ends here or below
  };
  struct Token {
    TokenId id = kNoToken;
    std::size_t size_bytes = 0;
    std::int32_t shorter_rank = kNone;  // the longest other token that this one starts with
    bool is_hidden = false;
    bool strips_left = false;
    bool strips_right = false;
    bool single_word = false;
  };

  void insert(std::string_view token, std::int32_t rank);
  std::int32_t child(std::int32_t node, char byte) const;
  std::int32_t longest_match(std::string_view text, std::size_t position) const;
  std::int32_t longest_visible(std::int32_t rank) const;
  bool may_start_hidden(std::string_view text, std::size_t position, std::size_t trimmed_end) const;

  std::vector<Token> tokens_;                 // by rank: longest first
  std::vector<Node> nodes_;                   // [0] is the root
  std::array<std::int32_t, 256> first_node_;  // the root's child by byte
};

}  // namespace kvasir::text
