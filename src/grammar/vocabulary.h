// The tokens of a model as bytes, arranged so that a grammar finds those that it allows.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "grammar/atlas.h"
#include "grammar/bitmask.h"
#include "grammar/regex/character_classes.h"
#include "grammar/token_trie.h"
#include "kvasir/ids.h"

namespace kvasir::grammar {

// Thread safety: immutable, but for the atlas, which any thread may use.
class Vocabulary {
 public:
  // tokens[id]: the bytes that a client sees of a token; empty for one without text (a control token). A token of more
  // than kMaxTokenBytes counts as one without text. The atlas holds at most atlas_bytes, and so does that of the start.
  explicit Vocabulary(std::span<const std::string_view> tokens, std::size_t atlas_bytes = Atlas::kMaxBytes);
  // first_tokens[id]: the bytes at the start of a text, where SentencePiece's tokens lose a blank.
  // is_start_behind_special: a token without text begins a text.
  Vocabulary(std::span<const std::string_view> tokens, std::span<const std::string_view> first_tokens,
             bool is_start_behind_special, std::size_t atlas_bytes = Atlas::kMaxBytes);

  static constexpr std::size_t kMaxTokenBytes = 1024;

  std::int32_t num_tokens() const { return texts_.size(); }
  std::string_view text(TokenId token) const {
    const std::string_view text = texts_[token];
    return text.size() <= kMaxTokenBytes ? text : std::string_view();
  }
  const TokenTexts& texts() const { return texts_; }
  std::uint32_t longest_token_characters() const { return longest_token_characters_; }

  const TokenTrie& trie() const { return trie_; }
  // All of the trie.
  const std::shared_ptr<const Remainders>& whole() const { return whole_; }
  Atlas& atlas() const { return *atlas_; }

  // Adds every token of at most num_characters characters, all of these classes.
  void add_tokens_of(CharacterClasses classes, std::uint32_t num_characters, TokenMask& mask) const;

  // Which bytes are tokens of their own; a text that needs another one cannot be written.
  bool has_byte_token(unsigned char byte) const { return has_byte_token_[byte]; }

  // The same tokens at the start of a text; null: they have the same bytes there.
  const Vocabulary* at_text_start() const { return at_text_start_.get(); }
  bool is_start_behind_special() const { return is_start_behind_special_; }
  // Tokens whose whole text is lost at the start of a text; ascending.
  std::span<const TokenId> silent_at_start() const { return silent_at_start_; }

 private:
  struct Group {  // tokens with the same classes and length
    CharacterClasses classes = 0;
    std::uint32_t num_characters = 0;
    std::vector<TokenId> tokens;
    TokenMask mask;  // of large groups
  };

  static std::vector<TokenTrie::Entry> entries_of(const TokenTexts& texts);
  void add_groups();

  TokenTexts texts_;
  TokenTrie trie_;
  std::vector<Group> groups_;
  std::uint32_t longest_token_characters_ = 0;
  std::array<bool, 256> has_byte_token_ = {};
  std::shared_ptr<const Remainders> whole_;
  std::unique_ptr<Atlas> atlas_;
  std::unique_ptr<const Vocabulary> at_text_start_;
  bool is_start_behind_special_ = false;
  std::vector<TokenId> silent_at_start_;
};

}  // namespace kvasir::grammar
